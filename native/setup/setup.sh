#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh run|test|long: sees to what `make run` and `make test` need beside Go and Node: a C compiler, Vulkan and, for the
# tests, Chromium. As root on Debian and Ubuntu it names and installs what is missing; elsewhere, and with SETUP=no, it says what to
# install and fails. When nothing is missing, which it finds out in a moment, it does nothing.
set -eu

say() { echo "setup: $*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

compiler() { echo '#include <stdlib.h>' | ${CC:-$(go env CC)} -E - >/dev/null 2>&1; }

# Metal and Direct3D are part of their systems.
vulkan_loader() {
	[ "$system" = Linux ] || return 0
	for f in /usr/lib/libvulkan.so.1 /usr/lib/*/libvulkan.so.1 /usr/lib64/libvulkan.so.1 /usr/local/lib/libvulkan.so.1; do
		[ ! -e "$f" ] || return 0
	done
	PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1'
}

vulkan_driver() {
	[ "$system" = Linux ] || return 0
	[ -z "${VK_ICD_FILENAMES:-}${VK_DRIVER_FILES:-}${VK_ADD_DRIVER_FILES:-}" ] || return 0
	for f in /usr/share/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json; do
		[ ! -e "$f" ] || return 0
	done
	return 1
}

# A test has OpenGL stand in for Vulkan.
opengl() {
	[ "$system" = Linux ] || return 0
	for f in /usr/lib/libEGL.so.1 /usr/lib/*/libEGL.so.1 /usr/lib64/libEGL.so.1 /usr/local/lib/libEGL.so.1; do
		[ ! -e "$f" ] || return 0
	done
	PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null | grep -q 'libEGL\.so\.1'
}

# Package e2e/chrome looks in the same places. Ubuntu's chromium-browser may be a stub, so it has to start.
browser() {
	if [ -n "${CHROME:-}" ]; then
		have "$CHROME"
		return
	fi
	case $system in
	Linux)
		for b in chromium chromium-browser google-chrome google-chrome-stable /snap/bin/chromium; do
			if have "$b" && "$b" --version >/dev/null 2>&1; then return 0; fi
		done
		return 1
		;;
	Darwin) have chromium || [ -d "/Applications/Chromium.app" ] || [ -d "/Applications/Google Chrome.app" ] ;;
	*) return 0 ;; # the tests themselves say so
	esac
}

# missing prints the Debian packages of what is not there.
missing() {
	compiler || echo gcc libc6-dev
	vulkan_loader || echo libvulkan1
	vulkan_driver || echo mesa-vulkan-drivers
	if [ "$what" != run ] && ! opengl; then echo libegl1 libgl1-mesa-dri; fi
	if [ "$what" != run ] && ! browser; then
		if grep -qs '^ID=ubuntu' /etc/os-release; then echo chromium-browser; else echo chromium; fi
	fi
	if [ "$what" = long ]; then missing_window; fi
}

# native/window, with GLFW, is built and shown on an X server without a screen.
missing_window() {
	[ "$system" = Linux ] || return 0
	have Xvfb || echo xvfb
	for h in X11/Xcursor/Xcursor:libxcursor X11/extensions/Xrandr:libxrandr X11/extensions/Xinerama:libxinerama \
		X11/extensions/XInput2:libxi X11/extensions/xf86vmode:libxxf86vm GL/gl:libgl1-mesa wayland-client:libwayland \
		xkbcommon/xkbcommon:libxkbcommon; do
		echo "#include <${h%:*}.h>" | ${CC:-$(go env CC)} -E - >/dev/null 2>&1 || echo "${h#*:}-dev"
	done
}

# purpose says what a package is for.
purpose() {
	case $1 in
	gcc | libc6-dev) echo "compiles the drivers' C" ;;
	libvulkan1) echo "finds Vulkan drivers" ;;
	mesa-vulkan-drivers) echo "Vulkan drivers, llvmpipe among them" ;;
	libegl1 | libgl1-mesa-dri) echo "OpenGL, which a test has stand in for Vulkan" ;;
	chromium*) echo "the browser of the tests" ;;
	xvfb) echo "the X server on which native/window is tested" ;;
	lib*-dev) echo "headers of what GLFW, of native/window, is built with" ;;
	esac
}

explain() {
	for p in "$@"; do say "  $p: $(purpose "$p")"; done
}

install_packages() {
	say "installing, which SETUP=no prevents:"
	explain "$@"
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	if ! { apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 update &&
		apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"; } >"$log" 2>&1; then
		cat "$log" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

what=${1:?usage: setup.sh run|test|long}
system=$(uname -s)

have go || { say "please install Go 1.26 or newer (https://go.dev/dl)"; exit 1; }
{ have npm && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; } 2>/dev/null || { say "please install Node.js 20 or newer with npm (https://nodejs.org)"; exit 1; }

# shellcheck disable=SC2046 # the packages are words
set -- $(missing)
[ $# -gt 0 ] || exit 0
if [ "${SETUP:-}" != no ] && have apt-get && [ "$(id -u)" = 0 ]; then
	install_packages "$@"
	# shellcheck disable=SC2046
	set -- $(missing)
	[ $# -gt 0 ] || exit 0
fi
case $system in
Linux)
	say "please install (names as on Debian):"
	explain "$@"
	;;
Darwin) say "please install Xcode's command line tools (xcode-select --install) and, for the tests, Chrome" ;;
*) say "please install a C compiler for cgo, for example MinGW-w64" ;;
esac
exit 1

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh run|test|long: sees to what `make run`, `make test` and `make test-long` need beside Go and Node: a C compiler,
# Vulkan, for the tests Chromium and, for long ones, emulators of Windows and 64-bit ARM. As root on Debian and Ubuntu it names
# and installs what is missing; elsewhere, and with SETUP=no, it says what to install and fails. When nothing is missing, which it
# finds out in a moment, it does nothing.
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
	if [ "$what" = long ]; then missing_long; missing_window; fi
}

# Package e2e/platforms runs programs for Windows and 64-bit ARM, on 64-bit PCs with Linux.
emulates() { [ "$system-$(uname -m)" = Linux-x86_64 ]; }

missing_long() {
	{ have firefox-esr || have firefox; } || echo firefox-esr
	emulates || return 0
	have x86_64-w64-mingw32-gcc || echo gcc-mingw-w64-x86-64
	{ have wine && have wineboot; } || echo wine wine64
	have aarch64-linux-gnu-gcc || echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	have qemu-aarch64 || echo qemu-user
}

# arm64_libraries unpacks Mesa for ARM and all it needs into .cache/arm64. It has apt resolve that as if for another machine, where
# nothing is installed, so that this one stays as it is.
arm64_libraries() {
	root=.cache/arm64
	emulates && [ ! -e $root ] || return 0
	{ have apt-get && [ "${SETUP:-}" != no ]; } || { say "please unpack an arm64 system with libvulkan1, libegl1 and mesa-vulkan-drivers (names as on Debian) into $root"; return 1; }
	say "unpacking Mesa for arm64 into $root"
	new=$(pwd)/.cache/arm64.new
	rm -rf "$new"
	mkdir -p "$new/root" "$new/lists/partial" "$new/cache/archives/partial" "$new/sources"
	: >"$new/status"
	# Ubuntu has ARM on another server.
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/ubuntu.sources; do
		[ ! -e "$f" ] || sed 's#[a-z]*://[a-z.]*\.ubuntu\.com/ubuntu/*#http://ports.ubuntu.com/ubuntu-ports#' "$f" >"$new/sources/${f##*/}"
	done
	[ ! -e "$new/sources/sources.list" ] || mv "$new/sources/sources.list" "$new/sources/main.list"
	log=$new/log
	set -- -q -y -o Acquire::Retries=3 -o Dir::State="$new" -o Dir::State::status="$new/status" -o Dir::Cache="$new/cache" \
		-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$new/sources" -o APT::Architecture=arm64 -o APT::Architectures=arm64
	if ! { apt-get "$@" update &&
		apt-get "$@" install --no-install-recommends --download-only libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri libgcc-s1; } >"$log" 2>&1; then
		cat "$log" >&2
		return 1
	fi
	for f in "$new"/cache/archives/*.deb; do dpkg-deb -x "$f" "$new/root"; done
	[ -e "$new/root/lib" ] || ln -s usr/lib "$new/root/lib"
	mv "$new/root" $root
	rm -rf "$new"
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
	chromium* | firefox*) echo "a browser of the tests" ;;
	gcc-mingw-w64-x86-64) echo "compiles for Windows" ;;
	wine*) echo "runs Windows programs" ;;
	xvfb) echo "a screen for what draws" ;;
	gcc-aarch64-linux-gnu | libc6-dev-arm64-cross) echo "compiles for 64-bit ARM" ;;
	qemu-user) echo "runs programs of other processors" ;;
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

libraries() { [ "$what" != long ] || arm64_libraries; }

# shellcheck disable=SC2046 # the packages are words
set -- $(missing)
[ $# -gt 0 ] || { libraries; exit; }
if [ "${SETUP:-}" != no ] && have apt-get && [ "$(id -u)" = 0 ]; then
	install_packages "$@"
	# shellcheck disable=SC2046
	set -- $(missing)
	[ $# -gt 0 ] || { libraries; exit; }
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

// SPDX-License-Identifier: Apache-2.0

package ops

const sameBits = "Seed, stream, row, column and the number of columns say what an element is, on every device (Philox 4x32-10). Seeds and " +
	"streams are whole numbers from 0 to 2^53-1, other ones ErrInvalid; without them they are 0."

// lastPlaces is said of numbers that functions are computed for.
const lastPlaces = " The last places are as the device rounds."

// randoms are shapings by their numbers: after those of the lists before.
var randoms = section(Shaping, "random numbers", []Operation{
	{
		Name: "RandomBits", Params: "rows, cols, seed, stream int", Least: 2, Note: sameBits, Shape: "rows, cols",
		Doc: "is a rows x cols matrix of 32 random bits as whole numbers",
	},
	{
		Name: "Uniform", Params: "rows, cols int, low, high float64, seed, stream int", Least: 2, Text: []string{"uniform", "rand"}, Shape: "rows, cols",
		Doc: "is a rows x cols matrix of random numbers from low up to but without high, in steps of 2^-24 of the distance", Note: sameBits,
	},
	{
		Name: "Normal", Params: "rows, cols int, mean, sigma float64, seed, stream int", Least: 2, Text: []string{"normal", "randn"}, Shape: "rows, cols",
		Doc: "is a rows x cols matrix of random numbers of a normal distribution, by its inverse (Wichura, algorithm AS 241)", Note: sameBits + lastPlaces,
	},
	{
		Name: "TruncatedNormal", Params: "rows, cols int, mean, sigma float64, seed, stream int", Least: 2, Shape: "rows, cols",
		Doc: "is a rows x cols matrix of random numbers of a normal distribution without what is further than 2 sigma from the mean", Note: sameBits + lastPlaces,
	},
	{
		Name: "Gumbel", Params: "rows, cols int, location, scale float64, seed, stream int", Least: 2, Shape: "rows, cols",
		Doc: "is a rows x cols matrix of random numbers of a Gumbel distribution", Note: sameBits + lastPlaces,
	},
	{
		Name: "RandomIntegers", Params: "rows, cols int, low, high float64, seed, stream int", Least: 3, Text: []string{"randomintegers", "randint"}, Shape: "rows, cols",
		Doc: "is a rows x cols matrix of random whole numbers from low up to but without high, of n below high where low alone is given. " +
			"Their frequencies are equal to a millionth; the element type has to hold all of them", Note: sameBits,
	},
	{
		Name: "RandomMask", Params: "rows, cols int, rate, scale float64, seed, stream int", Least: 3, Shape: "rows, cols",
		Doc: "is a rows x cols matrix of 0 with the probability rate, and of scale elsewhere: a mask for dropout", Note: sameBits,
	},
	{
		Name: "Permutation", Params: "n, seed, stream int", Least: 1, Text: []string{"permutation", "randperm"}, Shape: "1, n",
		Doc: "is a row of the numbers from 0 to n-1 in random order", Note: sameBits,
	},
})

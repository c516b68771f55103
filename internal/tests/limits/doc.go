// Package limits holds tests of the bounds of memory and time. The race detector takes memory of its own, so that they
// are not built with it.
package limits

// Command floor is a program whose only purpose is a client.
package main

import (
	"example.com/payvault/benchmarks/client/floor"
	"example.com/payvault/benchmarks/cold"
)

func main() { cold.Main(floor.New, floor.Answer) }

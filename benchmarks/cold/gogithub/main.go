// Command gogithub is a program whose only purpose is a client.
package main

import (
	"example.com/payvault/benchmarks/client/gogithub"
	"example.com/payvault/benchmarks/cold"
)

func main() { cold.Main(gogithub.New, gogithub.Answer) }

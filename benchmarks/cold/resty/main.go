// Command resty is a program whose only purpose is a client.
package main

import (
	"example.com/payvault/benchmarks/client/resty"
	"example.com/payvault/benchmarks/cold"
)

func main() { cold.Main(resty.New, resty.Answer) }

// Command openaigo is a program whose only purpose is a client.
package main

import (
	"example.com/payvault/benchmarks/client/openaigo"
	"example.com/payvault/benchmarks/cold"
)

func main() { cold.Main(openaigo.New, openaigo.Answer) }

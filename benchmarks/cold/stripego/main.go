// Command stripego is a program whose only purpose is a client.
package main

import (
	"example.com/payvault/benchmarks/client/stripego"
	"example.com/payvault/benchmarks/cold"
)

func main() { cold.Main(stripego.New, stripego.Answer) }

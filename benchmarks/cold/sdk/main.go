// Command sdk is a program whose only purpose is a client.
package main

import (
	"example.com/payvault/benchmarks/client/sdk"
	"example.com/payvault/benchmarks/cold"
)

func main() { cold.Main(sdk.New, sdk.Answer) }

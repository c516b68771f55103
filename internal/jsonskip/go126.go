//go:build goexperiment.jsonv2 && !go1.27

package jsonskip

import "encoding/json/v2"

// Err is json.SkipFunc in Go 1.26 with GOEXPERIMENT=jsonv2, where go-json-experiment is an alias of encoding/json/v2.
var Err = json.SkipFunc

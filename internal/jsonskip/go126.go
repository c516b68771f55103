//go:build goexperiment.jsonv2 && !go1.27

package jsonskip

import "encoding/json/v2"

// Err is that of the encoding/json/v2 of Go 1.26 with GOEXPERIMENT=jsonv2, by which go-json-experiment is replaced then.
var Err = json.SkipFunc

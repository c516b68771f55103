//go:build goexperiment.jsonv2 && !go1.27

package jsonskip

import "encoding/json/v2"

// Err is the error of encoding/json/v2 in Go 1.26 with GOEXPERIMENT=jsonv2, which then replaces go-json-experiment.
var Err = json.SkipFunc

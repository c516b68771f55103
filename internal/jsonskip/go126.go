//go:build goexperiment.jsonv2 && !go1.27

package jsonskip

import "encoding/json/v2"

// Err is json.SkipFunc. With GOEXPERIMENT=jsonv2, go-json-experiment is an alias of encoding/json/v2. In Go 1.26 that
// package does not accept errors.ErrUnsupported.
var Err = json.SkipFunc

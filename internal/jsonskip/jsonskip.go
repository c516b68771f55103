//go:build !goexperiment.jsonv2 || go1.27

// Package jsonskip has the error with which a caller's function leaves a value to the decoder or encoder of JSON v2.
package jsonskip

import "errors"

// Err is the error to return from a function that is passed to json.MarshalToFunc or json.UnmarshalFromFunc.
var Err = errors.ErrUnsupported

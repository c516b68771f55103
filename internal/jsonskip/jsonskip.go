//go:build !goexperiment.jsonv2 || go1.27

// Package jsonskip has the error with which a function of JSON v2 leaves a value to the decoder or encoder.
package jsonskip

import "errors"

// Err is for the functions in json.MarshalToFunc and json.UnmarshalFromFunc to return.
var Err = errors.ErrUnsupported

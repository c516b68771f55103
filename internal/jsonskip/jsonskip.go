//go:build !goexperiment.jsonv2 || go1.27

// Package jsonskip has the error with which a function leaves a value to the decoder or encoder of JSON v2.
package jsonskip

import "errors"

// Err is the error that a function returns to leave a value to the encoder or decoder. The function must have been
// passed to json.MarshalToFunc or json.UnmarshalFromFunc.
var Err = errors.ErrUnsupported

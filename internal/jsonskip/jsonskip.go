//go:build !goexperiment.jsonv2 || go1.27

// Package jsonskip has the error by which a function of JSON v2 leaves a value to the package.
package jsonskip

import "errors"

// Err is returned by the functions of json.MarshalToFunc and json.UnmarshalFromFunc.
var Err = errors.ErrUnsupported

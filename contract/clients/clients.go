// Package clients tests clients that two pinned generators make from api/openapi.yaml with their default options. The
// test compiles the clients and performs every operation of the emulator with them. The generated code is not
// committed.
package clients

import (
	// Only generated code and testdata/calls use these packages. The imports keep them in go.mod.
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/go-faster/errors"
	_ "github.com/go-faster/jx"
	_ "github.com/labstack/echo/v4"
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oapi-codegen/runtime/types"
	_ "github.com/ogen-go/ogen/http"
	_ "github.com/ogen-go/ogen/otelogen"
	_ "go.opentelemetry.io/otel"
	_ "go.opentelemetry.io/otel/metric"
	_ "go.opentelemetry.io/otel/semconv/v1.26.0"
	_ "go.opentelemetry.io/otel/trace"

	_ "example.com/payvault/payvaulttest"
)

// Package clients holds the clients that others generate from api/openapi.yaml: its test generates them with the pinned
// generators and their default options, compiles them, and makes every call with them against the emulator. Nothing
// that is generated is committed.
package clients

import (
	// What generated code and the calls in testdata import, so that go.mod keeps it.
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

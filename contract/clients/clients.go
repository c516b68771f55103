// Package clients tests the clients that others generate from api/openapi.yaml. The test generates clients with the
// pinned generators and their default options, compiles them, and makes every call with them against the emulator.
// Generated code is not committed.
package clients

import (
	// Generated code and the calls in testdata import these packages. The imports keep them in go.mod.
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

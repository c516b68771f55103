module example.com/payvault/internal/tests/loggers

go 1.26

require (
	example.com/payvault v0.0.0
	github.com/davecgh/go-spew v1.1.1
	github.com/fxamacker/cbor/v2 v2.10.0
	github.com/rs/zerolog v1.35.1
	github.com/sirupsen/logrus v1.9.3
	github.com/stretchr/testify v1.12.1
	go.mongodb.org/mongo-driver/v2 v2.10.0
	go.uber.org/goleak v1.3.0
	go.uber.org/zap v1.28.0
	go.yaml.in/yaml/v3 v3.0.5
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/google/go-querystring v1.2.0 // indirect
	github.com/govalues/decimal v0.1.36 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	golang.org/x/sys v0.29.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace example.com/payvault => ../../../

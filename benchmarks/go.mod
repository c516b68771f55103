module example.com/payvault/benchmarks

go 1.26.0

require (
	example.com/payvault v0.0.0
	github.com/aws/aws-sdk-go-v2 v1.47.7
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	resty.dev/v3 v3.0.0-rc.4
)

require (
	github.com/aws/smithy-go v1.28.8 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/go-querystring v1.2.0 // indirect
	github.com/govalues/decimal v0.1.36 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace example.com/payvault => ../

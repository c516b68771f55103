// Package testonly has an option that only package payvaulttest and the tests of this repository may use. The option is
// not public, because the limits that it turns off protect a service that others use too.
package testonly

// WithoutOverloadLimits returns a payvault.Option, as a value of type any because this package cannot import payvault.
// The option turns off two limits that the calls of a client share: the budget of retries, and the rate limit of an
// operation after status 429. It does not turn off WithRateLimit. Without this option many tests would wait more than a
// second after a 429. Package payvault sets the variable.
//
//nolint:gochecknoglobals // set once, by an init function
var WithoutOverloadLimits func() any

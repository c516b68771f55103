// Package sandbox has functions that the examples share. Client makes a client from the environment variables that name
// a sandbox.
package sandbox

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"example.com/payvault"
)

// Client returns a client of the sandbox that PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name. If
// none of them is set, it returns nil, and the example calls [Offline] and uses an emulator. If only some of them are
// set, it returns an error.
func Client(getenv func(string) string, opts ...payvault.Option) (*payvault.Client, error) {
	baseURL, key, text := getenv("PAYVAULT_BASE_URL"), getenv("PAYVAULT_API_KEY"), getenv("PAYVAULT_MERCHANT_ID")
	switch {
	case baseURL == "" && key == "" && text == "":
		return nil, nil
	case baseURL == "" || key == "" || text == "":
		return nil, errors.New("set all of PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID, or none of them")
	}
	merchant, err := Integer(getenv, "PAYVAULT_MERCHANT_ID")
	if err != nil {
		return nil, err
	}
	return payvault.NewClient(baseURL, key, append(opts, payvault.WithMerchantID(payvault.MerchantID(merchant)))...)
}

// Offline prints that an example uses an emulator. If flags is true, the user has given flags that need a sandbox.
// Offline then prints nothing and returns an error.
func Offline(out io.Writer, flags bool) error {
	if flags {
		return errors.New("flags need a sandbox, and this would run on an emulator: " +
			"set PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID")
	}
	_, err := fmt.Fprintln(out, "Offline: this runs on an emulator that ends with the program. Nothing reaches a service.")
	return err
}

// Integer returns the value of an environment variable, which has to be a positive number.
func Integer(getenv func(string) string, name string) (int64, error) {
	n, err := strconv.ParseInt(getenv(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%s is not a positive number", name)
	}
	return n, nil
}

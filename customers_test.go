package payvault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestCustomersCreate_filled checks that WithDeveloperID fills an empty DeveloperID, and that the options for merchants
// and vendors fill nothing.
func TestCustomersCreate_filled(t *testing.T) {
	t.Parallel()
	for filled, developer := range map[string]string{"3": "", "own": "own"} {
		request := &payvault.CustomerCreateRequest{ID: "C1", FirmName: "Firm", DeveloperID: developer}
		got := perform(t, payvault.OpCustomersCreate, request,
			payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))
		assert.JSONEq(t, `{"customer_id":"C1","customer_firm_name":"Firm","developer_id":"`+filled+`"}`, got)
	}
}

// TestCustomersCreate_refused checks that Create refuses a nil request, and a request that has only a first name or
// only a last name.
func TestCustomersCreate_refused(t *testing.T) {
	t.Parallel()
	const op = payvault.OpCustomersCreate
	assertRefused(t, op, nil, service.Fields{"request": {"is nil"}})
	for _, request := range []payvault.CustomerCreateRequest{{ID: "C", FirstName: "F"}, {ID: "C", LastName: "L"}} {
		assertRefused(t, op, &request, service.Fields{"customer_first_name": {calls.NoName}})
	}
}

// TestCustomersCreate_accepted checks that Create sends a customer with a first and a last name, whose ID the service
// generates.
func TestCustomersCreate_accepted(t *testing.T) {
	t.Parallel()
	request := &payvault.CustomerCreateRequest{AutoGenerateCustomerID: true, FirstName: "F", LastName: "L"}
	assert.JSONEq(t, `{"auto_generate_customer_id":true,"customer_first_name":"F","customer_last_name":"L"}`,
		perform(t, payvault.OpCustomersCreate, request))
}

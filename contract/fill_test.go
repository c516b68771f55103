package contract

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// A filler sets every field of a value, deeply, so that a new field is sent without anyone remembering it. What a text
// or a number means follows from its wire name.
type filler struct {
	values map[string]any  // goes before the values below
	skip   map[string]bool // wire names to leave out
}

// requestFiller fills what clients send: not the fields that the service assigns.
func requestFiller(values map[string]any) filler {
	return filler{values, map[string]bool{"shipping_id": true, "verified_date": true}}
}

// filled returns a T with every field set.
func filled[T any](t *testing.T, f filler) *T {
	t.Helper()
	v := new(T)
	require.NoError(t, f.fill(reflect.ValueOf(v).Elem(), ""))
	return v
}

type unknownKindError struct{ t reflect.Type }

func (e unknownKindError) Error() string { return "no value is known for the type " + e.t.String() }

func (f filler) fill(v reflect.Value, name string) error {
	if f.given(v, name) || fillKnown(v, name) {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(textFor(name))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(numberFor(name))
	case reflect.Interface:
		v.Set(reflect.ValueOf(textFor(name)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return f.fill(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return f.fill(v.Index(0), name)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.MakeMap(v.Type()))
		err := f.fill(element, name)
		v.SetMapIndex(reflect.ValueOf("legal_name"), element)
		return err
	case reflect.Struct:
		return f.fillStruct(v)
	default:
		return unknownKindError{v.Type()}
	}
	return nil
}

func (f filler) fillStruct(v reflect.Value) error {
	for field, value := range v.Fields() {
		name := wireName(field.Tag.Get("json"), field.Name)
		if name == "-" { // written in another way than the fields around it
			name = field.Name
		}
		if !field.IsExported() || f.skip[name] {
			continue
		}
		if err := f.fill(value, name); err != nil {
			return err
		}
	}
	return nil
}

// given sets the value that was asked for.
func (f filler) given(v reflect.Value, name string) bool {
	value, ok := f.values[name]
	if !ok {
		return false
	}
	given := reflect.ValueOf(value)
	switch {
	case given.Type().AssignableTo(v.Type()):
		v.Set(given)
	case given.Kind() == v.Kind():
		v.Set(given.Convert(v.Type()))
	default:
		return false
	}
	return true
}

// fillKnown sets the types that mean more than their kind.
func fillKnown(v reflect.Value, name string) bool {
	switch v := v.Addr().Interface().(type) {
	case *payvault.Secret:
		*v = payvault.NewSecret(textFor(name))
	case *payvault.Amount:
		*v = payvault.MustParseAmount("12.50")
	case *payvault.Date:
		*v = payvault.Date{Year: 2026, Month: time.January, Day: 31}
	case *payvault.Timestamp:
		*v = payvault.Timestamp{Time: time.Date(2026, 1, 31, 12, 5, 1, 0, time.UTC)}
	case *payvault.CompactTime:
		*v = "20260131120501"
	case *payvault.Pairs:
		*v = payvault.Pairs{{Name: "field", Value: name}, {Name: "lane", Value: "4"}}
	case **payvault.File:
		*v = receipt()
	case *json.RawMessage:
		*v = json.RawMessage(`{"name":"Acme"}`)
	default:
		return false
	}
	return true
}

func receipt() *payvault.File {
	return payvault.FileFromBytes("receipt.pdf", []byte("%PDF-1.7\n%%EOF\n"))
}

// textFor returns a valid text for a wire name, and one that differs from all others if any text is valid.
func textFor(name string) string {
	if text, ok := texts()[name]; ok {
		return text
	}
	switch {
	case strings.HasSuffix(name, "email"), strings.HasSuffix(name, "email_address"):
		return "jane@example.com"
	case strings.HasSuffix(name, "phone"):
		return "14155550100"
	case strings.HasSuffix(name, "_date"):
		return "2026-01-31"
	case strings.HasSuffix(name, "country_code"), strings.HasSuffix(name, "currency"):
		return "840"
	}
	return "The " + name
}

func texts() map[string]string {
	return map[string]string{
		"app_status":                  string(payvault.ApplicationIncomplete),
		"bank_account_number":         "0001234567",
		"bank_routing":                "011000015",
		"business_mcc":                "5734",
		"business_services_auth_time": string(payvault.AuthTime30Plus),
		"business_services_process":   string(payvault.ServicesProcessOrder),
		"business_type":               string(payvault.BusinessLLC),
		"business_websites":           "https://www.example.com",
		"card_number":                 "4111111111111111",
		"card_swipe":                  "%B4111111111111111^DOE/JANE^30121010000000000000?",
		"cbr_response_type":           string(payvault.DisputeCreditProcessed),
		"client_ip":                   "192.0.2.1",
		"country":                     "840",
		"customer_id":                 "jane01",
		"cvv2":                        "123",
		"dda_number":                  "0001234567",
		"exp_date":                    payvault.FormatExpDate(12, 2030),
		"fulfillment_provider_flag":   string(payvault.FulfillmentThirdParty),
		"merchant_id":                 "100001",
		"rcode":                       "000",
		"ssn":                         "123456789",
		"state_filed":                 "CA",
		"tax_id":                      "123456789",
		"tax_id_type":                 string(payvault.TaxIDEIN),
		"tr_number":                   "011000015",
		"trading_status":              string(payvault.TradingNonPublic),
		"type_id":                     string(payvault.ACHAccountTypeS),
	}
}

// numberFor returns a valid integer for a wire name.
func numberFor(name string) int64 {
	switch name {
	case "merchant_id":
		return 100001
	case "interestCount":
		return 1
	case "phone_number":
		return 14155550100
	}
	return int64(len(name)) + 10
}

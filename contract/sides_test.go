package contract

// A side is one of the two implementations of the interface, by the Go types that it reads and writes.
type side struct {
	source source
	roots  []root
	// Types that stand for several schemas at once, and so have the names of all of them.
	unions map[string]string
	// Types with wire names that are no part of the interface, or have a test of their own.
	apart map[string]string
	// Properties that the type leaves more open than the document.
	open map[string]string
	// Schemas that no type stands for.
	without map[string]string
}

// A root is a type with the schemas that it stands for; the types of its fields follow from there.
type root struct {
	goType  string
	schemas []string
	ignored []string // properties that another type reads
}

// platformAnswers are the success envelopes of platform operations.
func platformAnswers() []string {
	return []string{
		"CustomerCreateResponse", "CustomerListResponse", "PayeeCreateResponse", "PayeeDeleteResponse",
		"ApplicationCreateResponse", "ApplicationSaveDataResponse", "ApplicationValidateResponse", "DisputeRespondResponse",
		"SubscriptionTransactionsResponse", "ConfirmationResponse", "InvoiceSendResponse", "AccountUpdaterSubmitResponse",
	}
}

func platformFailures() []string {
	return []string{"PlatformFailure", "ApplicationValidateFailure", "ApplicationIncomplete"}
}

func sdkSide(s source) side {
	envelope := []string{"code", "message"} // platformReply reads it
	return side{
		source: s,
		roots: []root{
			{"TokenizeRequest", []string{"TokenizeRequest"}, nil},
			{"TokenizeResponse", []string{"TokenizeResponse"}, nil},
			{"tokenizeReply", []string{"TokenizeResponse"}, nil},
			{"CustomerCreateRequest", []string{"CustomerCreateRequest"}, nil},
			{"Customer", []string{"Customer"}, nil},
			{"Page", []string{"CustomerListResponse", "SubscriptionTransactionsResponse"}, envelope},
			{"PayeeCreateRequest", []string{"PayeeCreateRequest"}, nil},
			{"Payee", []string{"Payee"}, nil},
			{"ApplicationCreateRequest", []string{"ApplicationCreateRequest"}, nil},
			{"ApplicationCreated", []string{"ApplicationCreateResponse.data"}, nil},
			{"applicationDataBody", []string{"ApplicationSaveDataRequest"}, nil},
			{"ApplicationField", []string{"ApplicationField"}, nil},
			{"savedData", []string{"ApplicationSaveDataResponse.data"}, nil},
			{"savedField", []string{"SavedApplicationField"}, nil},
			{"ApplicationAddress", []string{"ApplicationAddress"}, nil},
			{"CardBrands", []string{"ApplicationCardBrands"}, nil},
			{"DeliveryMethods", []string{"ApplicationDeliveryMethod"}, nil},
			{"Ownership", []string{"ApplicationOwnership"}, nil},
			{"Validation", []string{"ApplicationIncomplete"}, envelope},
			{"DisputeResponse", []string{"DisputeResponse"}, nil},
			{"Transaction", []string{"SubscriptionTransaction"}, nil},
			{"SubscriptionCancelRequest", []string{"SubscriptionCancelRequest"}, nil},
			{"Confirmation", []string{"ConfirmationResponse.data"}, nil},
			{"InvoiceSendRequest", []string{"InvoiceSendRequest"}, nil},
			{"accountUpdaterBody", []string{"AccountUpdaterSubmitRequest"}, nil},
			{"AccountUpdaterRequest", []string{"AccountUpdaterSubmitResponse.data"}, nil},
			// The message of a success is always the same; that of a failure is read by the type failure.
			{"platformReply", platformAnswers(), []string{"message"}},
			// A tokenize that failed has no result: what it may carry besides is in the raw answer.
			{"failure", append(platformFailures(), "TokenizeFailure"), []string{"pg_id", "card_id", "card_number", "echo_fields"}},
		},
		unions: map[string]string{
			"ShippingAddress": "for requests and results; Create refuses the shipping_id",
			"PayeeAccount":    "for requests and results; Create refuses the verified_date",
			"platformReply":   "for every answer",
			"failure":         "for every answer",
		},
		apart: map[string]string{"ApplicationData": "see TestApplicationData", "listQuery": "see TestListQuery"},
		open: map[string]string{
			"platformReply.code": "a number or a text", "failure.code": "a number or a text", "failure.rcode": "a number or a text",
			"failure.data": "read on, by code", "Pricing.plan": "its fields are not shown",
			"tokenizeReply.rcode": "a number or a text",
		},
		without: map[string]string{
			"DisputeRespondForm":       "its two parts are written by Disputes.Respond",
			"PayeeDeleteResponse.data": "an empty object",
		},
	}
}

func emulatorSide(s source) side {
	return side{
		source: s,
		roots: []root{
			{"tokenizeRequest", []string{"TokenizeRequest"}, nil},
			{"tokenizeResponse", []string{"TokenizeResponse", "TokenizeFailure"}, nil},
			{"customerRequest", []string{"CustomerCreateRequest"}, nil},
			{"customerRecord", []string{"Customer"}, nil},
			{"payeeRequest", []string{"PayeeCreateRequest"}, nil},
			{"payeeRecord", []string{"Payee"}, nil},
			{"applicationRequest", []string{"ApplicationCreateRequest"}, nil},
			{"applicationResponse", []string{"ApplicationCreateResponse.data"}, nil},
			{"applicationData", []string{"ApplicationSaveDataRequest"}, nil},
			{"savedFields", []string{"ApplicationSaveDataResponse.data"}, nil},
			{"applicationAddress", []string{"ApplicationAddress"}, nil},
			{"ownership", []string{"ApplicationOwnership"}, nil},
			{"disputeRequest", []string{"DisputeResponse"}, nil},
			{"Transaction", []string{"SubscriptionTransaction"}, nil},
			{"cancelRequest", []string{"SubscriptionCancelRequest"}, nil},
			{"confirmation", []string{"ConfirmationResponse.data"}, nil},
			{"sendRequest", []string{"InvoiceSendRequest"}, nil},
			{"updateRequest", []string{"AccountUpdaterSubmitRequest"}, nil},
			{"updateResponse", []string{"AccountUpdaterSubmitResponse.data"}, nil},
			{"envelope", append(platformAnswers(), platformFailures()...), nil},
		},
		unions: map[string]string{"envelope": "for every answer"},
		apart: map[string]string{
			"Account": "a seed", "Seed": "a seed", "Subscription": "a seed", "Invoice": "a seed", "Dispute": "a seed", "Webhook": "a seed",
			"notification": "deliveries are not shown",
		},
		open: map[string]string{
			"envelope.data": "by operation",
		},
		without: map[string]string{
			"DisputeRespondForm":        "its two parts are read by name; see TestMutants",
			"PayeeDeleteResponse.data":  "an empty object",
			"ApplicationCardBrands":     "checked by its options; see TestSettings and TestMutants",
			"ApplicationDeliveryMethod": "checked by its options; see TestSettings and TestMutants",
		},
	}
}

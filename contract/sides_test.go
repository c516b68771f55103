package contract

// A side is one of the two implementations of the interface, by the Go types that it reads and writes.
type side struct {
	source source
	roots  []root
	// Types that stand for several schemas at once, and so have the names of all of them.
	unions map[string]string
	// Types with wire names that are no part of the interface, or have a test of their own.
	apart map[string]string
	// Properties that the type has in another way than the document.
	open map[string]string
	// Schemas that no type stands for, besides the envelopes of platform answers.
	without map[string]string
}

// A root is a type with the schemas that it stands for; the types of its fields follow from there.
type root struct {
	goType  string
	schemas []string
	ignored []string // properties that another type reads
}

func sdkSide(s source, c *contract) side {
	envelope := []string{"code", "message"}
	return side{
		source: s,
		roots: []root{
			{"TokenizeRequest", []string{"TokenizeRequest"}, nil},
			{"TokenizeResponse", []string{"TokenizeResult"}, nil},
			{"CustomerCreateRequest", []string{"CustomerCreateRequest"}, nil},
			{"Customer", []string{"Customer"}, nil},
			{"Page", pages(c), envelope},
			{"PayeeCreateRequest", []string{"PayeeCreateRequest"}, nil},
			{"Payee", []string{"Payee"}, nil},
			{"ApplicationCreateRequest", []string{"ApplicationCreateRequest"}, nil},
			{"ApplicationCreated", []string{"ApplicationCreated.data"}, nil},
			{"applicationDataBody", []string{"ApplicationSaveDataRequest"}, nil},
			{"ApplicationField", []string{"ApplicationField"}, nil},
			{"pair", []string{"ApplicationField"}, nil},
			{"savedData", []string{"ApplicationSaved.data"}, nil},
			{"savedField", []string{"SavedApplicationField"}, nil},
			{"ApplicationAddress", []string{"ApplicationAddress"}, nil},
			{"CardBrands", []string{"ApplicationCardBrands"}, nil},
			{"DeliveryMethods", []string{"ApplicationDeliveryMethod"}, nil},
			{"Ownership", []string{"ApplicationOwnership"}, nil},
			{"Validation", []string{"ApplicationIncomplete"}, envelope},
			{"DisputeRespondRequest", []string{"DisputeRespondRequest"}, nil},
			{"Transaction", []string{"Transaction"}, nil},
			{"SubscriptionCancelRequest", []string{"SubscriptionCancelRequest"}, nil},
			{"Confirmation", []string{"Confirmation.data"}, nil},
			{"InvoiceSendRequest", []string{"InvoiceSendRequest"}, nil},
			{"accountUpdaterBody", []string{"AccountUpdaterSubmitRequest"}, nil},
			{"AccountUpdaterSubmission", []string{"AccountUpdaterSubmitted.data"}, nil},
		},
		unions: map[string]string{
			"ShippingAddress": "for requests and results; Create refuses the shipping_id",
			"PayeeAccount":    "for requests and results; Create refuses the verified_date",
		},
		apart: map[string]string{
			"ApplicationData": "see TestApplicationData", "listQuery": "see TestListQuery",
			"platformReply": "see TestTraffic", "pageReply": "see TestTraffic", "tokenizeReply": "see TestTraffic",
			"failure": "see TestTraffic", "validationReply": "see TestTraffic",
			"SavedField": "its wire form is savedField",
		},
		open: map[string]string{
			"TokenizeRequest.merchant_id": "typed like all merchant IDs, and sent as the text that the document wants",
			"Pricing.plan":                "its fields are not shown",
		},
		without: map[string]string{
			"ApplicationData":    "see TestApplicationData",
			"TokenizeFailure":    "the envelopes of the SDK read it; see TestTraffic",
			"DisputeRespondForm": "its two parts are written by Disputes.Respond",
			"PayeeDeleted.data":  "an empty object",
		},
	}
}

// pages are the schemas of pages of a list.
func pages(c *contract) []string {
	var names []string
	for name, schema := range c.doc.Components.Schemas {
		if schema.Value.Properties["totalPages"] != nil {
			names = append(names, name)
		}
	}
	return names
}

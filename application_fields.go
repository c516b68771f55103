package payvault

// ApplicationFieldInfo describes a documented field of [ApplicationData]. Like a [SavedField], it has the type and the
// settings of the field, so that a form can be drawn before anything is saved.
type ApplicationFieldInfo struct {
	Key      string        `json:"key"`
	Type     string        `json:"type"` // kind of field, such as "text" or "toggle"
	Settings FieldSettings `json:"settings"`
}

// ApplicationFields returns the documented fields of an application, in the order of [ApplicationData].
//
// Settings.Required is the flag that the service reported for a sample application. No call checks the flag, because
// the required fields may depend on the business type. Settings.Options are the allowed values of a select, a radio and
// a checkbox_group, and the names of the boxes of a checkbox_row. The service documents no labels, so the Label of an
// option is its Value.
func ApplicationFields() []ApplicationFieldInfo {
	const required, optional = true, false
	field := func(key, kind string, required bool, values ...string) ApplicationFieldInfo {
		info := ApplicationFieldInfo{key, kind, FieldSettings{Required: required}}
		for _, value := range values {
			info.Settings.Options = append(info.Settings.Options, FieldOption{Label: value, Value: value})
		}
		return info
	}
	return []ApplicationFieldInfo{
		field("legal_name", "text", required),
		field("business_name", "text", required),
		field("business_websites", "url_list", required),
		field("business_email", "email", required),
		field("business_phone", "phone", optional),
		field("business_address", "address_suggest", required),
		field("business_type", "select", required,
			texts(BusinessSoleProp, BusinessLLC, BusinessCorporationPublic, BusinessCorporationPrivate, BusinessPartnership,
				BusinessTaxExempt)...),
		field("limited_partnership", "toggle", required),
		field("trading_status", "radio", required, texts(TradingPublic, TradingNonPublic)...),
		field("tax_id_type", "select", required, texts(TaxIDEIN, TaxIDSSN)...),
		field("tax_id", "tax_id", required),
		field("state_filed", "us_state", required),
		field("business_established", "date", required),
		field("business_mcc", "mcc", required),
		field("business_description", "text", required),
		field("ownership", "ownership", required),
		field("processing_history", "toggle", required),
		field("business_services_process", "radio", required, texts(ServicesProcessOrder, ServicesProcessFulfill)...),
		field("business_services_auth_time", "checkbox_group", required,
			texts(AuthTime1, AuthTime30, AuthTime30Plus, AuthTime90Plus)...),
		field("card_brands", "checkbox_row", required, "vi", "mc", "di", "am", "gp"),
		field("card_volume", "currency", required),
		field("ach_volume", "currency", optional),
		field("total_volume", "currency", required),
		field("high_ticket", "currency", required),
		field("fulfillment_provider_flag", "radio", required, texts(FulfillmentBusiness, FulfillmentThirdParty)...),
		field("fulfillment_delivery_method", "checkbox_row", required, "digitally", "pickup", "delivery", "Service"),
		field("delivery_confirmation", "toggle", required),
		field("fulfillment_name", "text", optional),
		field("fulfillment_contact", "name", optional),
		field("fulfillment_email", "email", optional),
		field("fulfillment_phone", "phone", optional),
		field("fulfillment_address", "address_suggest", optional),
		field("fulfillment_process_flag", "toggle", optional),
		field("bank_routing", "bank_routing", required),
		field("bank_account_number", "bank_dda", required),
	}
}

// texts converts values of a string type, such as BusinessType, to strings.
func texts[T ~string](values ...T) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}

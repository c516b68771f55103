package inspect

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// A preset is a fault at a click.
type preset struct {
	Label string         `json:"label"`
	Fault map[string]any `json:"fault"`
	Go    string         `json:"go"`
}

// presetList makes the presets for an operation, or for all, that strike a number of times.
func presetList(operation string, times int) []preset {
	list := []preset{
		{Label: "Lose the answer of what is performed", Fault: map[string]any{"kind": "drop after commit"}},
		{Label: "429 with Retry-After: 1", Fault: map[string]any{"kind": "rate limit", "retry_after": "1"}},
		{Label: "503", Fault: map[string]any{"kind": "respond", "status": http.StatusServiceUnavailable}},
		{Label: "Hang until the client gives up", Fault: map[string]any{"kind": "hang"}},
		{Label: "Cut the answer of what is performed", Fault: map[string]any{"kind": "cut body", "after_commit": true}},
		{Label: "Permit 5 requests a second", Fault: map[string]any{"kind": "permit rate", "rate": 5, "retry_after": "1"}},
	}
	for _, p := range list {
		p.Fault["operation"], p.Fault["times"] = operation, times
		if p.Fault["kind"] == "permit rate" {
			p.Fault["times"] = 0 // it stays until it is removed
		}
	}
	return list
}

func (h *handler) presets(w http.ResponseWriter, r *http.Request) {
	query, times := r.URL.Query(), 1
	if query.Has("times") {
		var err error
		if times, err = strconv.Atoi(query.Get("times")); err != nil {
			refuse(w, http.StatusBadRequest, "the times are no whole number")
			return
		}
	}
	list := presetList(query.Get("operation"), times)
	for i, p := range list {
		text, err := json.Marshal(p.Fault)
		if err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		fault, err := h.emulator.ReadFault(text)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		list[i].Go = GoLine(fault)
	}
	answer(w, http.StatusOK, list)
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// bom is a CycloneDX document with only the fields that sbom writes.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp time.Time `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// sbom returns the SBOM. It lists the program, the standard library, and every module that is linked into one of the
// builds, sorted by path.
func sbom(builds []*debug.BuildInfo) ([]byte, error) {
	info := builds[0]
	built, err := commitTime(info)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, build := range builds {
		for _, module := range build.Deps {
			versions[module.Path] = module.Version
		}
	}
	document := bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	main := newComponent("application", info.Main.Path, info.Main.Version)
	main.Name = program
	document.Metadata = metadata{Timestamp: built, Component: main}
	// Scanners find vulnerabilities of the standard library under the name stdlib.
	library := newComponent("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	document.Components = append(document.Components, library)
	for _, path := range slices.Sorted(maps.Keys(versions)) {
		document.Components = append(document.Components, newComponent("library", path, versions[path]))
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the SBOM: %w", err)
	}
	return append(text, '\n'), nil
}

func newComponent(kind, path, version string) component {
	name := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: kind, Ref: name, Name: path, Version: version, PURL: name}
}

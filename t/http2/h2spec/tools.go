//go:build tools

// Package tools names what go.mod is for.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"

// Package browser tests the emulator's page in Chromium, which .ci/run installs.
package browser

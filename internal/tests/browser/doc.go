// Package browser has the tests of the emulator's page in Chromium, which .ci/run installs.
package browser

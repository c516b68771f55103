// Package browser tests the emulator's page in Chromium, which .ci/run installs if it runs as root.
package browser

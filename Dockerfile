# The emulator as an image of one static program, without a shell:
#
#   docker build -t payvault-emulator .
#   docker run --rm -p 127.0.0.1:8700:8700 payvault-emulator
#   docker run --rm --network host payvault-emulator -addr 127.0.0.1:8700 -inspect 127.0.0.1:8701   # with the page
#
# Flags of the emulator follow the name of the image, such as -rate 20.
FROM golang:1.26 AS build
WORKDIR /source
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /payvault-emulator ./cmd/payvault-emulator

FROM scratch
# For webhooks on https.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /payvault-emulator /
USER 65532:65532
EXPOSE 8700
# Within the container, only the address of every interface is reached from outside.
ENTRYPOINT ["/payvault-emulator", "-allow-remote", "-addr", "0.0.0.0:8700"]

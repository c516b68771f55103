package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// shutdownTime is the time that notifications under way have when the program ends.
const shutdownTime = 10 * time.Second

// serve receives notifications while work runs, and then shuts down gracefully. It accepts no new notifications and
// waits for those under way. Otherwise a notification could be lost that the service counts as delivered.
func serve(ctx context.Context, listener net.Listener, r *receiver, work func(context.Context) error) error {
	fmt.Fprintln(r.out, "Listening on", listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("/notifications", r.handler())
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 15 * time.Second,
		// Notifications under way go on after ctrl-C.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel() // stop work if nobody listens
		served <- server.Serve(listener)
	}()
	failed := work(ctx)
	shutdown, end := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer end()
	if err := server.Shutdown(shutdown); err != nil {
		return errors.Join(failed, err, server.Close())
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(failed, err)
	}
	fmt.Fprintf(r.out, "Shut down; %d notifications received.\n", r.count())
	return failed
}

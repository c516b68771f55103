package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// shutdownTime is the longest time that the program waits at its end for notifications that are being received.
const shutdownTime = 10 * time.Second

// serve receives notifications while the function work runs. Afterwards serve accepts no new notifications, and waits
// up to shutdownTime for those that are being received.
func serve(ctx context.Context, listener net.Listener, r *receiver, work func(context.Context) error) error {
	fmt.Fprintln(r.out, "Listening on", listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("/notifications", r.handler())
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 15 * time.Second,
		// After ctrl-C, notifications that are being received are still processed.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel() // work ends when the server has ended
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

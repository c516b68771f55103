package main

import (
	"context"
	"io"
	"net"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// offline starts an emulator and receives the notifications that it sends.
func offline(ctx context.Context, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := payvaulttest.NewServer()
	defer srv.Close()
	webhook := srv.Webhooks.Seed(payvaulttest.Webhook{NotificationURL: "http://" + listener.Addr().String() +
		"/notifications"})
	return serve(ctx, listener, newReceiver(out), func(ctx context.Context) error {
		if err := attach(ctx, srv.Client(), webhook.ID); err != nil {
			return err
		}
		if err := happen(ctx, srv); err != nil {
			return err
		}
		return srv.WaitDeliveries(ctx)
	})
}

// happen changes records of the emulator so that each event that attach adds occurs once.
func happen(ctx context.Context, srv *payvaulttest.Server) error {
	_, err := srv.Client().AccountUpdater.Submit(ctx, []payvault.AccountUpdaterCard{
		{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: payvault.FormatExpDate(1, 2027)},
	})
	if err != nil {
		return err
	}
	subscription := srv.Subscriptions.Seed(
		payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{{AmtTran: payvault.MustParseAmount("19.90")}}},
	)
	return srv.SetTransactionStatus(subscription.ID, subscription.Transactions[0].PGID, "S")
}

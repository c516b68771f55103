// Package temporalpayvault runs bulk work of package payvault on Temporal, for jobs that need more than one machine or
// that must not end with one: card updates of tens of millions of cards, and exports of all customers or of the
// transactions of many subscriptions.
//
// [Register] gives a worker the workflows [SubmitCards] and [ExportLists] and their activities; a client starts them
// like any other. [Error] is for activities of your own.
//
// # Card updates
//
// A batch of 100 cards is sent at most once, whatever happens to workers, to the server and to the network between
// them, with few exceptions without a journal, which the README names. The heartbeat of an activity is its journal: a
// batch is announced in it, and the server has acknowledged that, before the batch is sent. What a lost one had
// announced, and had not reported, is of unknown outcome and is not sent again; another activity does the rest. An
// activity that the server has given up cannot announce, and begins and repeats nothing more when a heartbeat is
// refused.
//
// Every batch of a job ends accepted, refused or unknown. Unknown ones may have been performed: the README says what to
// find out before anything is sent again. With a [payvault.Journal] fewer of them are unknown, all are recorded in it,
// and the same job, started under another ID or after a reset, sends nothing again. Without one a workflow that is
// reset or retried fails with [TypeReset] and sends nothing.
//
// Set WorkerStopTimeout in the options of workers to more than an attempt of a request may take, such as 70 s: a worker
// that stops ends the requests in flight and leaves the rest to others. With less, what was in flight becomes unknown.
//
// # Secrets
//
// Cards are passed by reference and range, see [CardSource]. Histories, heartbeats and failures hold numbers of
// batches, request IDs, status, codes and what the service said, cleared of card numbers. The service may repeat the
// CardID of a card there: that is your own reference, and not to be a secret. What a CardSource or a Sink says is left
// out of failures, since it may quote a card. [NewConverters] encrypts what else is passed.
package temporalpayvault

// Package temporalpayvault runs bulk work of package payvault on Temporal. It is for work that is too much for one
// machine, or that must go on when a machine fails: updates of tens of millions of cards, and exports of all customers
// or of the transactions of many subscriptions.
//
// [Register] gives a worker the workflows [SubmitCards] and [ExportLists] and their activities. A client starts these
// workflows like any other workflow. [ActivityError] converts the errors of activities that you write yourself.
//
// # Card updates
//
// An activity runs AccountUpdater.SubmitAll over a range of batches, with a [payvault.Journal] that all workers share.
// The journal records each batch before the batch is sent. So a batch that may have been performed is not sent again,
// and Temporal may repeat every activity that fails or is lost. Heartbeats only show that a worker is alive. If a
// worker is killed while a batch is in flight, the outcome of the batch is unknown: the service may have performed the
// batch, and somebody has to look up the outcome.
//
// # Secrets
//
// Cards are passed by reference and range, see [CardSource]. Histories and heartbeats contain batch numbers, HTTP
// statuses, codes and texts of the service. Secrets are removed from these texts, as in the errors of package payvault.
// The text of an error of a CardSource or a Sink may quote a card, so it is left out. A [temporal.ApplicationError] is
// an exception: its message and its type are written. With a codec of [NewCodec] that has a current key, the converters
// of [NewConverters] encrypt all payloads except those of nil values.
package temporalpayvault

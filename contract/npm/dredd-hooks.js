// Hooks for dredd. They skip the answers "default", which are failures, because dredd expects status 200 for them. They set
// the API keys of the emulator's seed file, and write the multipart form, because dredd cannot write one.
const hooks = require('hooks');

const basic = (key) => 'Basic ' + Buffer.from(':' + key).toString('base64');

hooks.beforeEach((transaction, done) => {
  const answer = JSON.parse(transaction.expected.body || '{}');
  transaction.skip = answer.code === 9999 || answer.rcode === '999';
  const partner = transaction.fullPath.startsWith('/platform/application/');
  transaction.request.headers.Authorization = basic(partner ? 'partner-vendor-key' : 'merchant-api-key');
  if (transaction.fullPath.startsWith('/platform/dispute/')) {
    transaction.request.headers['Content-Type'] = 'multipart/form-data; boundary=b';
    transaction.request.body = '--b\r\nContent-Disposition: form-data; name="disputeResponse"\r\n\r\n' +
      '{"cbr_response_type":"ND"}\r\n--b--\r\n';
  }
  done();
});

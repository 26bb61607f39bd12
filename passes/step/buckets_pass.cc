// Puts collectives side by side that travel as one message.
//
//   %wide = mpc.cast %dw : ...
//   %sum = mpc.all_reduce %wide {processes = 2} : ...
//   %low = mpc.cast %sum : ...
//   %sum2 = mpc.all_reduce %db {processes = 2} : ...
// becomes
//   %wide = mpc.cast %dw : ...
//   %sum = mpc.all_reduce %wide {mpc.bucket = 0, processes = 2} : ...
//   %sum2 = mpc.all_reduce %db {mpc.bucket = 0, processes = 2} : ...
//   %low = mpc.cast %sum : ...
#include "compiler/dialect/messages.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/passes.h"
#include "passes/step/collective_buckets.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_BUCKETSPASS
#include "passes/passes.h.inc"

namespace {

/// A TiB, which no process has to give.
constexpr int64_t mostMib = 1 << 20;

class BucketsPass : public impl::BucketsPassBase<BucketsPass> {
public:
  using BucketsPassBase::BucketsPassBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    if (failed(check())) {
      signalPassFailure();
      return;
    }
    MpcDialect::BucketAttrHelper helper = dialectOf(getOperation()).getBucketAttrHelper();
    getOperation().walk([&](Operation *op) {
      if (helper.isAttrPresent(op))
        helper.removeAttr(op);
    });
    // Dependences of all operations cost more than this look.
    if (llvm::none_of(getOperation().getBody().front(), [](Operation &op) { return sendsMessage(&op); }))
      return;
    CollectiveBuckets buckets(getOperation(), bucketMib << 20);
    OpBuilder builder(&getContext());
    for (auto [number, bucket] : llvm::enumerate(buckets.getBuckets()))
      for (unsigned member : bucket.members)
        helper.setAttr(buckets.operationOf(member), builder.getI64IntegerAttr(int64_t(number)));
    buckets.apply();
  }

private:
  LogicalResult check() {
    if (bucketMib < 0 || bucketMib > mostMib)
      return getOperation().emitError() << "bucket-mib must be from 0 (every collective is a message of its own) to "
                                        << mostMib << ", got " << int64_t(bucketMib);
    if (!getOperation().getBody().hasOneBlock())
      return getOperation().emitError() << "mpc-buckets orders one block of operations, got "
                                        << getOperation().getBody().getBlocks().size();
    return success();
  }
};

} // namespace

} // namespace mpc

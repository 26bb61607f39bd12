#include "passes/step/collective_buckets.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/messages.h"
#include "compiler/dialect/tensor_values.h"

#include <algorithm>
#include <cassert>

using namespace mlir;

namespace mpc {

/// Gathers of more bytes gain nothing from sharing a message, and would take memory that no plan counts.
static constexpr int64_t mostGatheredBytes = 64 << 10;

CollectiveBuckets::CollectiveBuckets(func::FuncOp function, int64_t mostBytes)
    : body(function.getBody().front()), mostBytes(mostBytes), dependences(body), phases(function),
      bucketOf(dependences.size()) {
  for (unsigned number = 0; number < dependences.size(); ++number)
    if (sendsMessage(operationOf(number)))
      place(number);
}

void CollectiveBuckets::place(unsigned number) {
  Operation *op = operationOf(number);
  std::optional<unsigned> bucket;
  for (unsigned known = 0; known < buckets.size(); ++known)
    if (mayShareMessage(operationOf(buckets[known].members.front()), op))
      bucket = known;
  if (!bucket || !mayJoin(*bucket, number)) {
    bucket = buckets.size();
    buckets.emplace_back();
  }
  buckets[*bucket].members.push_back(number);
  buckets[*bucket].bytes += bytesOf(op->getOperand(0));
  bucketOf[number] = bucket;
}

bool CollectiveBuckets::mayJoin(unsigned bucket, unsigned number) const {
  Operation *op = operationOf(number);
  int64_t most = isa<AllGatherOp>(op) ? std::min(mostBytes, mostGatheredBytes) : mostBytes;
  if (buckets[bucket].bytes + bytesOf(op->getOperand(0)) > most)
    return false;
  unsigned ready = 0;
  for (unsigned earlier : dependences.before(number))
    ready = std::max(ready, earlier);
  llvm::BitVector followers = followersOf(bucket);
  return !followers.test(number) &&
         llvm::none_of(followers.set_bits(), [&](unsigned follower) { return follower < ready && !mayWait(follower); });
}

SmallVector<unsigned> CollectiveBuckets::together(unsigned number) const {
  return bucketOf[number] ? buckets[*bucketOf[number]].members : SmallVector<unsigned>{number};
}

llvm::BitVector CollectiveBuckets::followersOf(unsigned bucket) const {
  llvm::BitVector found(dependences.size());
  SmallVector<unsigned> next(buckets[bucket].members);
  while (!next.empty()) {
    unsigned number = next.pop_back_val();
    for (unsigned follower : dependences.after(number))
      for (unsigned each : together(follower))
        if (!found.test(each)) {
          found.set(each);
          next.push_back(each);
        }
  }
  return found;
}

bool CollectiveBuckets::mayWait(unsigned number) const {
  Operation *op = operationOf(number);
  Phase phase = phases.phaseOf(op);
  return !op->hasTrait<StateUpdate>() && phase != Phase::kForward && phase != Phase::kBackward;
}

class CollectiveBuckets::Order {
public:
  explicit Order(const CollectiveBuckets &buckets) : of(buckets), done(of.dependences.size()) {}

  SmallVector<unsigned> find() {
    for (unsigned number = 0; number < done.size(); ++number) {
      if (waits(number)) {
        waiting.push_back(number);
        continue;
      }
      add(number);
      addWaiting();
    }
    assert(found.size() == done.size() && "all buckets are there at the end, and nothing waits");
    return found;
  }

private:
  bool waits(unsigned number) const {
    if (done.test(number))
      return false;
    return of.bucketOf[number] ? number != of.together(number).back() : !isReady(number) && of.mayWait(number);
  }

  bool isReady(unsigned number) const {
    return llvm::all_of(of.dependences.before(number), [&](unsigned earlier) { return done.test(earlier); });
  }

  void add(unsigned number) {
    if (done.test(number))
      return;
    for (unsigned each : of.together(number))
      for (unsigned earlier : of.dependences.before(each))
        add(earlier);
    for (unsigned each : of.together(number)) {
      done.set(each);
      found.push_back(each);
    }
  }

  // Members of a bucket wait for its last one, which adds them.
  void addWaiting() {
    for (unsigned number : waiting)
      if (!of.bucketOf[number] && isReady(number))
        add(number);
    llvm::erase_if(waiting, [&](unsigned number) { return done.test(number); });
  }

  const CollectiveBuckets &of;
  llvm::BitVector done;
  SmallVector<unsigned> found, waiting;
};

void CollectiveBuckets::apply() {
  SmallVector<unsigned> order = Order(*this).find();
  if (llvm::is_sorted(order))
    return;
  Operation *terminator = body.getTerminator();
  ViewMover views(body);
  for (unsigned number : order) {
    views.moveFor(operationOf(number));
    operationOf(number)->moveBefore(terminator);
  }
  views.moveFor(terminator);
  for (Operation *unread : views.getLeft())
    unread->moveBefore(terminator);
}

} // namespace mpc

// What a pass promises of a step that it rewrites. The interpreter shows whether it keeps that.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/module/graph_builder.h"
#include "kernels/reference/reference.h"

namespace mpc::test {

/// What a pass promises of the results that a step has before and after it.
enum class Promise {
  kUnchanged,     ///< the IR stays as it is
  kBits,          ///< the same bits
  kUnscaledBits,  ///< the same bits where the loss scale is 1; a step that is not finite holds what optimizers write
  kMicroSteps,    ///< kUnscaledBits of two micro-steps on the same inputs; the first holds what optimizers write
  kProcesses,     ///< kUnscaledBits of two processes on the same inputs, in each of them
  kValues,        ///< the same values where nothing is rounded: the pass changes types, or what is rounded and when
  kStatistics,    ///< the step measures its values and updates nothing
};

/// Passes, or forms of a pass with options, that do not promise the same bits.
struct PromiseException {
  const char* form;  ///< a regular expression that finds the form; the first that does is taken
  Promise promise;
  /// In front of autodiff, where it is another: derivatives follow from what has been rounded.
  std::optional<Promise> early = std::nullopt;
};
const std::vector<PromiseException>& PromiseExceptions();
bool IsFor(const PromiseException& exception, const std::string& form);

/// A result and the role of it; none where nothing is said of it.
struct RoleResult {
  reference::Tensor value;
  std::optional<Role> role;
};
using RoleResults = std::map<std::string, RoleResult>;

/// The promise of one pass to one step. Where the step accumulates, it does so over two micro-steps.
class PassPromise {
 public:
  /// `form` is a pass as the text of a pipeline names it, with its options. `before` is what it will run on.
  PassPromise(const std::string& form, const compiler::Module& before);

  /// Fails fatally unless `after`, what the pass has made of the module, keeps the promise.
  void ExpectKept(compiler::Module& after) const;

  /// The module before the pass.
  const std::string& text() const { return text_; }

 private:
  Promise promise_;
  std::string text_;
  RoleResults results_;  ///< before the pass, rounded or exact as the promise needs them
};

}  // namespace mpc::test

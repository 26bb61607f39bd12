// The options of mixed precision, and what they mean where they are left out. Every front resolves them here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/amp_option_value.h"
#include "frontend/graph/loss_scale.h"
#include "kernels/dtype.h"

namespace mpc::amp {

/// The options as a user gives them. `OptionValue` takes a boolean or a number as such or as text ("True", "128.0").
struct Options {
  std::string level;                  ///< O0, O1, O2, O3, auto; empty: O0 for a Model, O1 for Initialize
  OptionValue dtype;                  ///< the low type, f16 or bf16 (apex: cast_model_type); f16, at auto NativeLowType
  OptionValue keep_batchnorm_fp32;    ///< norms in f32; true at O2, false at O3, not an option of O1 and auto
  OptionValue master_weights;         ///< parameters stored in f32; false: in the low type only. See LevelDefaults
  OptionValue loss_scale;             ///< "dynamic", "derived", "none" or a number >= 1; see LevelDefaults
  OptionValue cast_model_outputs;     ///< type that the network returns in training, Eval and Predict; default f32
  OptionValue min_loss_scale;         ///< lower limit of a dynamic scale: 1 for a Model, none for Initialize
  OptionValue max_loss_scale;         ///< upper limit of a dynamic scale: none for a Model, 2^24 for Initialize
  OptionValue patch_torch_functions;  ///< apex's; if given: true at O1, false at O0, O2 and O3, an error at auto
  std::int64_t num_losses = 1;        ///< number of loss scalers, one a loss
  bool enabled = true;                ///< false: exactly the O0 program without a scaler
  int verbosity = 1;                  ///< 1: prints the level's defaults and what is in effect, once; 0: does not
  // These lists change the classes of operations. Entries are names of operations ("softmax") or Cell paths
  // ("bnnet/conv1").
  std::vector<std::string> allow_add;  ///< may run low at O1 and auto
  std::vector<std::string> deny_add;   ///< compute in f32
  std::vector<std::string> infer_add;  ///< follow their inputs
  std::vector<std::string> clear_add;  ///< move or compare values
};

/// An option, as flags and errors have it.
struct OptionInfo {
  const char* name;         ///< the member: "keep_batchnorm_fp32"
  const char* flag;         ///< "keep-batchnorm-fp32"
  const char* placeholder;  ///< what stands for its value: "true|false"
  const char* help;         ///< one or two sentences, and the default of a Model
};

/// Calls `visit(OptionInfo, member)` for each option of `given`, an Options. A test breaks where a member is missing in
/// this list.
template <typename Given, typename Visitor>
void VisitOptions(Given& given, Visitor&& visit) {
  visit(
      OptionInfo{"level", "amp-level", "O0|O1|O2|O3|auto",
                 "O0: f32 (default). O1: matrix work low, the rest where it costs fewest casts. O2: low but for norms "
                 "and losses. O3: low but for losses. auto: low where it pays on this device."},
      given.level);
  visit(OptionInfo{"dtype", "dtype", "f16|bf16", "The low type. Default f16, at auto bf16 where the device has it."},
        given.dtype);
  visit(OptionInfo{"keep_batchnorm_fp32", "keep-batchnorm-fp32", "true|false",
                   "Norms in f32. Default: true at O2, false at O3; no option of O1 and auto."},
        given.keep_batchnorm_fp32);
  visit(OptionInfo{"master_weights", "master-weights", "true|false",
                   "Parameters stored in f32 (default), or in the low type only; no option of O1 and auto."},
        given.master_weights);
  visit(OptionInfo{"loss_scale", "loss-scale", "dynamic|derived|none|NUMBER",
                   "Default: dynamic at O1, O2 and auto with f16, 1 with skipping there with bf16, else none."},
        given.loss_scale);
  visit(OptionInfo{"min_loss_scale", "min-loss-scale", "NUMBER", "Of a dynamic scale. Default 1."},
        given.min_loss_scale);
  visit(OptionInfo{"max_loss_scale", "max-loss-scale", "NUMBER", "Of a dynamic scale. Default: none."},
        given.max_loss_scale);
  visit(OptionInfo{"cast_model_outputs", "cast-model-outputs", "f32|f16|bf16",
                   "The type of what the network returns. Default f32."},
        given.cast_model_outputs);
  visit(OptionInfo{"allow_add", "allow-add", "NAME,...", "Operations or Cell paths that may run low at O1 and auto."},
        given.allow_add);
  visit(OptionInfo{"deny_add", "deny-add", "NAME,...", "Operations or Cell paths that compute in f32."},
        given.deny_add);
  visit(OptionInfo{"infer_add", "infer-add", "NAME,...", "Operations or Cell paths that follow their inputs."},
        given.infer_add);
  visit(OptionInfo{"clear_add", "clear-add", "NAME,...", "Operations or Cell paths that move or compare values."},
        given.clear_add);
  visit(OptionInfo{"num_losses", "num-losses", "N", "Scalers, one a loss (1)."}, given.num_losses);
  visit(OptionInfo{"patch_torch_functions", "patch-torch-functions", "true|false",
                   "apex's name for level O1: true there, false elsewhere."},
        given.patch_torch_functions);
  visit(OptionInfo{"enabled", "amp-enabled", "true|false", "false: exactly the O0 program, without a scaler."},
        given.enabled);
  visit(OptionInfo{"verbosity", "amp-verbosity", "N",
                   "1: tells the level's defaults and what is in effect; 0: does not."},
        given.verbosity);
}

/// Entries of the four lists of `Options`, checked.
struct OperationLists {
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  std::vector<std::string> infer;
  std::vector<std::string> clear;
};

/// Options in effect: checked, with every default filled in.
struct Precision {
  std::string level = "O0";
  DType dtype = DType::kF16;  ///< the low type; nothing is low at O0
  /// Empty at O1 and auto, which do not have this option, and at O0 unless given.
  std::optional<bool> keep_batchnorm_fp32;
  bool master_weights = true;
  std::optional<DType> cast_model_outputs;  ///< empty: f32, except for what the network itself casts
  LossScaleConfig loss_scale;
  std::int64_t num_losses = 1;
  OperationLists lists;
};

/// The front whose defaults apply: Model (MindSpore's) or Initialize (apex's).
enum class Front { kModel, kInitialize };

/// The defaults of a level.
///
/// | | Model | Initialize |
/// |---|---|---|
/// | level | O0 | O1 |
/// | scaler at O1, O2, auto with f16 | dynamic from 2^24, minimum 1 | dynamic from min(max, 2^16), maximum 2^24 |
/// | with bf16 | scale 1, check and skip | the same |
/// | scaler at O0, O3 | none | none |
/// | master_weights at O3 | true | false |
Precision LevelDefaults(std::string_view level, DType dtype, Front front);

/// Checks the options against each other and fills in the front's defaults. `enabled = false` is checked too, then
/// gives O0. A number as loss scale skips at an overflow for a Model (MindSpore's Fixed) and does not for Initialize
/// (apex). Errors (INVALID_ARGUMENT): the option, what was given, what is accepted and why.
absl::StatusOr<Precision> ResolveOptions(const Options& options, Front front);

/// The first limit of a loss scale that is given: "min_loss_scale = 8". One of the two is given.
std::string LimitText(const Options& options);

/// Parses `text` as ResolveOptions parses `loss_scale` of a Model: "dynamic", "derived", "none" or a number >= 1.
absl::StatusOr<LossScaleConfig> ParseLossScale(std::string_view text);

/// The options in one line: "level O2: dtype f16, keep_batchnorm_fp32 true, master_weights true, loss_scale dynamic
/// from 16777216, ...".
std::string Describe(const Precision& precision);

/// Prints to std::cerr, at verbosity 1 and above, the level's defaults and what is in effect. Call it once a front. Of
/// processes that train together rank 0 prints.
void Announce(const Options& options, const Precision& precision, Front front);

}  // namespace mpc::amp

#include "tools/support/amp_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mpc::tools {
namespace {

AmpFlag Value(std::string name, std::string placeholder, std::string help, amp::OptionValue amp::Options::*member) {
  const bool is_switch = placeholder == "true|false";
  return {std::move(name), std::move(placeholder), std::move(help), is_switch,
          [member](const std::string& value, amp::Options& options) {
            options.*member = value;
            return absl::OkStatus();
          }};
}

AmpFlag List(std::string name, std::string help, std::vector<std::string> amp::Options::*member) {
  return {std::move(name), "NAME,...", std::move(help), false,
          [member](const std::string& value, amp::Options& options) {
            for (absl::string_view entry : absl::StrSplit(value, ',')) (options.*member).emplace_back(entry);
            return absl::OkStatus();
          }};
}

template <typename Number>
AmpFlag WholeNumber(std::string name, std::string help, Number amp::Options::*member) {
  return {std::move(name), "N", std::move(help), false, [member](const std::string& value, amp::Options& options) {
            Number number = 0;
            if (!absl::SimpleAtoi(value, &number)) {
              return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not a whole number"));
            }
            options.*member = number;
            return absl::OkStatus();
          }};
}

std::vector<AmpFlag> MakeFlags() {
  using amp::Options;
  std::vector<AmpFlag> flags;
  flags.push_back(
      {"amp-level", "O0|O1|O2|O3|auto",
       "O0: f32 (default). O1: matrix work low, the rest where it costs fewest casts. O2: low but for norms "
       "and losses. O3: low but for losses. auto: low where it pays on this device.",
       false, [](const std::string& value, Options& options) {
         options.level = value;
         return value.empty() ? absl::InvalidArgumentError("choose O0, O1, O2, O3 or auto") : absl::OkStatus();
       }});
  flags.push_back(
      Value("dtype", "f16|bf16", "The low type. Default f16, at auto bf16 where the device has it.", &Options::dtype));
  flags.push_back(Value("keep-batchnorm-fp32", "true|false",
                        "Norms in f32. Default: true at O2, false at O3; no option of O1 and auto.",
                        &Options::keep_batchnorm_fp32));
  flags.push_back(Value("master-weights", "true|false",
                        "Parameters stored in f32 (default), or in the low type only; no option of O1 and auto.",
                        &Options::master_weights));
  flags.push_back(Value("loss-scale", "dynamic|none|NUMBER",
                        "Default: dynamic at O1, O2 and auto with f16, 1 with skipping there with bf16, else none.",
                        &Options::loss_scale));
  flags.push_back(Value("min-loss-scale", "NUMBER", "Of a dynamic scale. Default 1.", &Options::min_loss_scale));
  flags.push_back(Value("max-loss-scale", "NUMBER", "Of a dynamic scale. Default: none.", &Options::max_loss_scale));
  flags.push_back(Value("cast-model-outputs", "f32|f16|bf16", "The type of what the network returns. Default f32.",
                        &Options::cast_model_outputs));
  flags.push_back(List("allow-add", "Operations or Cell paths that may run low at O1 and auto.", &Options::allow_add));
  flags.push_back(List("deny-add", "Operations or Cell paths that compute in f32.", &Options::deny_add));
  flags.push_back(List("infer-add", "Operations or Cell paths that follow their inputs.", &Options::infer_add));
  flags.push_back(List("clear-add", "Operations or Cell paths that move or compare values.", &Options::clear_add));
  flags.push_back(WholeNumber("num-losses", "Scalers, one a loss (1).", &Options::num_losses));
  flags.push_back(Value("patch-torch-functions", "true|false", "apex's name for level O1; refused at other levels.",
                        &Options::patch_torch_functions));
  flags.push_back({"amp-enabled", "true|false", "false: exactly the O0 program, without a scaler.", true,
                   [](const std::string& value, Options& options) {
                     const std::optional<bool> enabled = amp::OptionValue(value).AsBool();
                     options.enabled = enabled.value_or(true);
                     return enabled.has_value()
                                ? absl::OkStatus()
                                : absl::InvalidArgumentError(absl::StrCat("'", value, "' is not true or false"));
                   }});
  flags.push_back(WholeNumber("amp-verbosity", "1: tells the level's defaults and what is in effect; 0: does not.",
                              &Options::verbosity));
  return flags;
}

}  // namespace

const std::vector<AmpFlag>& AmpFlags() {
  static const std::vector<AmpFlag>* const flags = new std::vector<AmpFlag>(MakeFlags());
  return *flags;
}

}  // namespace mpc::tools

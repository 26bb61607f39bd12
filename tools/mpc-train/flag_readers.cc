#include "tools/mpc-train/flag_readers.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

enum Reader : unsigned {
  kImages = 1,
  kSyntheticData = 2,
  kTextData = 4,
  kDcganData = 8,  // digits, and networks of its own
  kPictureData = 16,
  kData = kImages | kSyntheticData | kTextData | kDcganData | kPictureData,
  kTrains = 32,
  kTests = 64,  // --epochs=0
  kEmits = 128,
  kFinds = 256,  // --precision-frontier
  kActions = kTrains | kTests | kEmits | kFinds,
};

unsigned DataOf(const TrainOptions& options) {
  if (options.model == kDcgan) return kDcganData;
  if (options.data == kText) return kTextData;
  if (options.data == kPictures) return kPictureData;
  return options.data == kSynthetic ? kSyntheticData : kImages;
}

absl::Status Unread(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status CheckData(const FlagSet& flags, const TrainOptions& options) {
  const std::string unread = flags.FirstUnread(DataOf(options));
  if (unread.empty()) return absl::OkStatus();
  if (options.model == kDcgan) return Unread(absl::StrCat("dcgan takes no ", unread));
  return Unread(absl::StrCat(unread, " and --data=", options.data,
                             " contradict each other: the flag is of other data or networks"));
}

absl::Status CheckEmitted(const FlagSet& flags, const TrainOptions& options) {
  static constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
      {"--init", ": no weights are written; mpc-run loads them"},
      {"--load", ": no weights are written; mpc-run loads them"},
      {"--graph", ": mpc-run takes it"},
      {"--steps-per-launch", ": mpc-run takes it"}};
  constexpr char kTakesNo[] = "--emit trains nothing and takes no ";
  if (const std::string unread = flags.FirstUnread(kEmits); !unread.empty()) {
    std::string_view reason;
    for (const auto& [flag, why] : kReasons) {
      if (flag == unread) reason = why;
    }
    return Unread(absl::StrCat(kTakesNo, unread, std::string(reason)));
  }
  if (options.amp.loss_scale.text() == "derived") {
    return Unread(absl::StrCat(
        kTakesNo, "--loss-scale=derived, which follows from parameters and a batch: give dynamic ", "or a number"));
  }
  // Of text the learning rate of every step is part of the step.
  if (options.data == kText) return absl::OkStatus();
  for (const char* flag : {"epochs", "steps", "warmup-steps"}) {
    if (flags.Given(flag)) return Unread(absl::StrCat(kTakesNo, "--", flag, " but for --data=text"));
  }
  if (!flags.Given("lr-schedule") || options.schedule == "constant") return absl::OkStatus();
  return Unread(absl::StrCat("--emit writes a step that keeps its learning rate, but for --data=text: --lr-schedule=",
                             options.schedule, " is mpc-train's own, ",
                             options.schedule == "cosine" ? "between epochs" : "which knows how many steps there are"));
}

absl::Status CheckFinds(const FlagSet& flags) {
  const std::string unread = flags.FirstUnread(kFinds);
  if (unread.empty()) return absl::OkStatus();
  return Unread(absl::StrCat("--precision-frontier trains nothing and takes no ", unread));
}

absl::Status CheckAction(const FlagSet& flags, const TrainOptions& options) {
  if (!options.emit_path.empty()) return CheckEmitted(flags, options);
  if (options.force) return Unread("--force lets --emit write over a file; there is no --emit");
  if (!options.arch.empty()) {
    return Unread("--arch is what --emit compiles for; a run takes the device that is here");
  }
  if (options.epochs > 0) return options.precision_frontier_points > 0 ? CheckFinds(flags) : absl::OkStatus();
  if (const std::string unread = flags.FirstUnread(kTests); !unread.empty()) {
    return Unread(absl::StrCat(unread, " and --epochs=0 contradict each other: nothing is trained"));
  }
  const bool reads_weights = !options.load_path.empty() || !options.init_path.empty() || options.resume;
  const bool locks = !options.lock_precision_path.empty() || !options.check_precision_path.empty();
  if (options.data != kSynthetic || reads_weights || locks || !options.save_path.empty()) return absl::OkStatus();
  return Unread(
      "--epochs=0 and --data=synthetic leave nothing to do: synthetic data have no test; --save=FILE writes what "
      "training would begin from");
}

}  // namespace

void LimitFlags(FlagSet& flags) {
  flags.Limit(kData, kSyntheticData | kTextData, {"steps", "tokens", "layers", "width", "heads"});
  flags.Limit(kData, kSyntheticData | kPictureData, {"image-size"});
  flags.Limit(kData, kImages | kSyntheticData | kPictureData, {"classes"});
  flags.Limit(kData, kImages, {"shift"});
  flags.Limit(kData, kImages | kPictureData, {"drop-remainder"});
  flags.Limit(kData, kImages | kDcganData | kPictureData, {"data-dir"});
  flags.Limit(kData, kPictureData, {"normalize", "augment", "skip-damaged", "workers"});
  flags.Limit(kData, kTextData, {"text-file", "validate-every", "sample", "temperature", "prompt"});
  flags.Limit(kData, kImages | kSyntheticData | kTextData | kPictureData,
              {"lr-schedule",
               "warmup-steps",
               "accumulation",
               "momentum",
               "weight-decay",
               "clip-norm",
               "clip-value",
               "plot",
               "dropout",
               "freeze",
               "init",
               "load",
               "max-consecutive-skips",
               "diagnose-overflow",
               "capsule",
               "capsule-at",
               "record-hashes",
               "profile-precision",
               "check-precision",
               "lock-precision",
               "precision",
               "precision-frontier",
               "max-gradient-error",
               "max-loss-error",
               "frontier-error",
               "frontier-batches",
               "frontier-rates",
               "frontier-errors",
               "save-precision",
               "timing",
               "report",
               "report-html",
               "distributed",
               "transport",
               "loss-weight",
               "communication-dtype",
               "reduction",
               "bucket-mib"});
  flags.Limit(
      kActions, kTrains,
      {"accumulation", "plot", "validate-every", "save-every", "keep", "max-consecutive-skips", "diagnose-overflow",
       "capsule", "capsule-at", "record-hashes", "profile-precision", "trace", "trace-steps"});
  flags.Limit(kActions, kTrains | kFinds,
              {"augment", "distributed", "transport", "loss-weight", "communication-dtype", "reduction", "bucket-mib",
               "shift", "drop-remainder", "precision-frontier", "max-gradient-error", "max-loss-error",
               "frontier-error", "frontier-batches", "frontier-rates", "frontier-errors", "save-precision"});
  flags.Limit(kActions, kTrains | kTests,
              {"sample", "temperature", "prompt", "steps-per-launch", "save", "resume", "summary", "timing", "report",
               "report-html"});
  flags.Limit(kActions, kTrains | kTests | kFinds,
              {"data-dir", "normalize", "skip-damaged", "workers", "graph", "init", "load", "check-precision",
               "lock-precision", "precision"});
  flags.Limit(kActions, kTrains | kTests | kEmits, {"epochs"});
  flags.Limit(kActions, kTrains | kEmits | kFinds, {"dropout", "freeze"});
  flags.Limit(kActions, kEmits, {"emit", "force", "arch"});
}

absl::Status CheckFlagsAreRead(const FlagSet& flags, const TrainOptions& options) {
  if (absl::Status status = CheckData(flags, options); !status.ok()) return status;
  return CheckAction(flags, options);
}

}  // namespace mpc::tools

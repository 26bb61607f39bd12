// What mpc-train is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc/amp.h"
#include "tools/support/device_flags.h"

namespace mpc::models {
struct WorkloadSizes;
}  // namespace mpc::models

namespace mpc::tools {

/// The model of two networks, which are trained by a step of their own. It learns digits.
inline constexpr std::string_view kDcgan = "dcgan";

/// Data that fit every network but kDcgan.
inline constexpr std::string_view kSynthetic = "synthetic";
/// Classes of digits and mnist.
inline constexpr int kDigitClasses = 10;
/// Folders of pictures, for the ResNets that take three channels and for vision transformers.
inline constexpr std::string_view kPictures = "pictures";
/// Bytes of a file, for language models.
inline constexpr std::string_view kText = "text";

/// The flags of mpc-train, as `mpc-train --help` explains them. Values of sizes, epochs, text and the optimizer are
/// those after ParseCommandLine, which fills in defaults. Of the optimizer kDcgan reads the learning rate alone.
/// ParseCommandLine refuses a flag that the model, the data or the action does not read.
struct TrainOptions : DeviceOptions {
  std::string model;
  amp::Options amp;
  std::string data = "digits";                    ///< digits, mnist, pictures, synthetic, text
  std::int64_t steps = 100;                       ///< steps of an epoch of synthetic data or text
  std::int64_t image_size = 0;                    ///< pixels of a side of photographs; 0: the network's
  std::int64_t tokens = 0;                        ///< tokens of a row of text, synthetic or not; 0: the network's
  std::int64_t layers = 0, width = 0, heads = 0;  ///< sizes of a language model; 0: the network's
  std::optional<double> dropout;                  ///< rate of a transformer; not given: the network's, which is 0
  std::string data_directory;                     ///< empty: where mpc looks by itself; pictures need it
  std::vector<float> mean, std;                   ///< values of pictures; ParseCommandLine sets the network's
  bool augment = false;
  bool skip_damaged = false;  ///< leaves pictures out that cannot be decoded
  std::int64_t workers = 0;
  std::int64_t epochs = 0;  ///< 0: evaluates only; ParseCommandLine sets the default of the data
  std::int64_t batch_size = 32;
  bool drop_remainder = false;    ///< leaves out the rows of an epoch that fill no batch
  std::int64_t shift = 0;         ///< training images move by up to so many pixels
  std::int64_t accumulation = 1;  ///< batches whose gradients' mean makes one step
  /// momentum, sgd, adam, adamw, torch-adamw, rmsprop, lion, adagrad, lamb, lars
  std::string optimizer = "momentum";
  double learning_rate = 0;  ///< at the start; by default the optimizer's
  double momentum = 0.9;     ///< momentum of momentum, lars and sgd; the default of sgd is 0
  double weight_decay = 0;   ///< acts in every optimizer; on text, on matrices and tables alone
  double clip_norm = 0;      ///< largest norm of all gradients together; 0: they are not clipped
  double clip_value = 0;     ///< largest element of a gradient; 0: they are not clipped
  /// cosine, constant, exponential, one-cycle, restarts. A cosine falls to 0, after every epoch; on text to a tenth,
  /// after every step. RateIsInStep tells which act after every step. dcgan reads none.
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 0;    ///< steps before the schedule, over which the rate rises
  bool default_warmup = false;      ///< `warmup_steps` was not given, and is a tenth of all steps
  std::string text_path;            ///< empty: the text that comes with mpc
  std::int64_t validate_every = 0;  ///< steps whose optimizer acts, on text; 0: after epochs only
  bool default_validation = false;  ///< `validate_every` was not given, and is a fifth of an epoch
  std::int64_t sample_bytes = 0;    ///< bytes of the sample written at the end, on text
  double temperature = 1;           ///< for the sample; 0 takes the likeliest byte
  std::string prompt = "\n";        ///< for the sample, which goes on from it
  std::int64_t seed = 1;            ///< seed of initial values, row order, dropout and the sample
  /// Skipped steps in a row that end the run, at a loss scale that cannot shrink; 0: none do.
  std::int64_t max_consecutive_skips = 20;
  /// 0: OMP_NUM_THREADS, else one for each processor that affinity and quota allow. Of several processes
  /// GetRankThreads.
  std::int64_t threads = 0;
  std::string save_path;           ///< a file or a folder of checkpoints; empty: nothing is saved
  std::int64_t save_every = 0;     ///< steps; 0: after epochs in a folder, at the end in a file
  std::int64_t keep = 5;           ///< newest files of a folder that stay; 0: all
  bool resume = false;             ///< goes on from a checkpoint
  std::string resume_path;         ///< a file, or a folder for its newest file; empty: `save_path`
  std::string load_path;           ///< safetensors file of weights to begin from; empty: none
  std::string init_path;           ///< published weights to begin from, whose head may be another; empty: none
  std::int64_t classes = 0;        ///< classes of a ResNet, whose head is then new; 0: the network's
  std::string freeze;              ///< paths of Parameters that are not trained, with commas between; empty: none
  std::string emit_path;           ///< a file: the Programs are written there in place of training
  bool force = false;              ///< `emit_path` may write over a file that is there
  std::string plot_path;           ///< SVG picture of the run, written after each epoch; empty: none
  std::string summary_path;        ///< JSON file of the results; empty: none
  bool diagnose_overflow = false;  ///< replays the first step of a run of overflows and names its first bad value
  std::string capsule_path;        ///< one step is written there, to be repeated elsewhere; empty: none
  std::int64_t capsule_at = 0;     ///< the step that is written, from 1; 0: the first bad one
  std::string record_hashes_path;  ///< hashes of the state after each step; empty: none
  bool profile_precision = false;  ///< measures which exponents values need and what the low type loses of them
  std::string profile_path;        ///< file of profile_precision: .txt, .json or .svg; empty: the table is printed only
  std::string amp_profile_path;    ///< a profile whose lossy Cells stay in f32; empty: none
  std::string trace_path;          ///< Chrome trace of the steps below; empty: none
  std::int64_t trace_first = 10, trace_last = 12;  ///< steps of this process, counted from 1
  bool timing = false;                             ///< prints the seconds of the phases and passes of compiling
  bool report = false;                             ///< prints why each operation of the step has its precision
  std::string report_html_path;                    ///< a page of that step for a browser; empty: none
  bool quiet = false;                              ///< prints results only, no progress
  bool distributed = false;                        ///< one of the processes that a launcher has started
  std::string transport;                           ///< shared, mpi, nccl; empty: distributed::Transport::kAuto
  std::string loss_weight = "rows";                ///< rows, elements; as the next ones where `distributed`
  std::string communication_dtype = "f32";         ///< in which gradients are added: f32, f16, bf16
  std::string reduction = "ordered";               ///< ordered, fast
  std::int64_t bucket_mib = 25;                    ///< MiB of gradients that travel as one message
  std::int64_t ranks = 1;                          ///< those processes, this one among them; see SetRanks
  std::string check_precision_path;                ///< a precision lock that the step must hold; empty: none
  std::int64_t precision_frontier_points = 0;  ///< points of the frontier of precision to run; 0: it is not asked for
  double max_gradient_error = 0;               ///< limits the point of the frontier that is chosen; 0: does not
  double max_loss_error = 0;                   ///< likewise
  std::string frontier_error = "gradient";     ///< or "loss": the error that the frontier weighs
  std::int64_t frontier_batches = 4;           ///< those that errors of the frontier are told on
  std::string frontier_rates = "device";       ///< "device": measured here; "default": those that come with mpc
  std::string frontier_errors = "estimated";   ///< or "measured": where errors of single slots come from
  std::string save_precision_path;             ///< the chosen precision is written there; empty: nowhere
  std::string precision_path;                  ///< the chosen precision to train with; empty: none
  std::string lock_precision_path;             ///< the step's precision lock is written there; empty: nowhere
};

/// True if --save names a folder of checkpoints: one that exists, or a name that ends in '/'.
bool SavesToFolder(const TrainOptions& options);

/// Steps of all epochs of synthetic data or text, at least those of one epoch, and at least 1. An epoch has as many
/// batches as `steps`, and TrainOptions::accumulation of them of each rank make a step. The largest number where there
/// are more.
std::int64_t TotalSteps(const TrainOptions& options);

/// Sets the number of processes that train together, which a launcher says, and what follows from it. Errors: a
/// warm-up that leaves none of the steps.
absl::Status SetRanks(std::int64_t ranks, TrainOptions& options);

/// The sizes that the network is built with. 0: as published. On text, words are bytes and the context is a row.
models::WorkloadSizes SizesOf(const TrainOptions& options);

struct CommandLine {
  TrainOptions options;
  std::string help;  ///< not empty: print it and end
};

/// Reads the command line and fills in the defaults of the data set and the optimizer. Everything is checked that needs
/// no file: errors are bad usage. The profile of --amp-profile alone is read here, and its errors are among them.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace mpc::tools

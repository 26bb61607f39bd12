// A deep convolutional generative adversarial network (Radford et al. 2016) for digits of 8x8 or 16x16 pixels.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "mpc/mpc.h"

namespace mpc::models {

struct DcganOptions {
  std::int64_t image_size = 16;  ///< a multiple of 4
  std::int64_t num_channels = 1;
  std::int64_t latent_size = 64;
  std::int64_t width = 32;  ///< channels of the stage next to the image
};

namespace dcgan {

inline constexpr std::int64_t kKernel = 4;

/// Weights as published: N(0, 0.02^2).
inline nn::Conv2dTranspose Up(std::int64_t in, std::int64_t out) {
  return {in, out, kKernel, {.stride = 2, .pad_mode = "pad", .padding = {1}, .weight_init = Normal(0.02)}};
}
inline nn::Conv2d Down(std::int64_t in, std::int64_t out) {
  return {in, out, kKernel, {.stride = 2, .pad_mode = "pad", .padding = {1}, .weight_init = Normal(0.02)}};
}

}  // namespace dcgan

/// [N, latent_size] -> images [N, channels, image_size, image_size] in (-1, 1).
class DcganGenerator : public nn::Cell {
 public:
  MPC_CELL(DcganGenerator, fc, bn1, up1, bn2, up2)

  explicit DcganGenerator(const DcganOptions& options = {})
      : fc(options.latent_size, 2 * options.width * (options.image_size / 4) * (options.image_size / 4),
           {.has_bias = false, .weight_init = Normal(0.02)}),
        bn1(2 * options.width),
        up1(dcgan::Up(2 * options.width, options.width)),
        bn2(options.width),
        up2(dcgan::Up(options.width, options.num_channels)),
        options_(options) {}

  Tensor Construct(Tensor z) {
    const std::int64_t side = options_.image_size / 4;
    Tensor x = reshape(fc(z), {-1, 2 * options_.width, side, side});
    x = up1(relu(bn1(x)));
    x = up2(relu(bn2(x)));
    return tanh(x);
  }

 private:
  nn::Dense fc;
  nn::BatchNorm2d bn1;
  nn::Conv2dTranspose up1;
  nn::BatchNorm2d bn2;
  nn::Conv2dTranspose up2;
  DcganOptions options_;
};

/// Images [N, channels, image_size, image_size] -> logits [N, 1]: positive where an image looks real.
class DcganDiscriminator : public nn::Cell {
 public:
  MPC_CELL(DcganDiscriminator, down1, down2, bn2, fc)

  explicit DcganDiscriminator(const DcganOptions& options = {})
      : down1(dcgan::Down(options.num_channels, options.width)),
        down2(dcgan::Down(options.width, 2 * options.width)),
        bn2(2 * options.width),
        fc(2 * options.width * (options.image_size / 4) * (options.image_size / 4), 1, {.weight_init = Normal(0.02)}) {}

  Tensor Construct(Tensor x) {
    x = leaky_relu(down1(x), 0.2);
    x = leaky_relu(bn2(down2(x)), 0.2);
    return fc(flatten(x));
  }

 private:
  nn::Conv2d down1;
  nn::Conv2d down2;
  nn::BatchNorm2d bn2;
  nn::Dense fc;
};

/// One adversarial step on real images [N, channels, image_size, image_size] and noise [N, latent_size]. The
/// discriminator learns to tell real images from generated ones, then the generator to pass for real. Returns the
/// losses of both (that of the discriminator is 2 log 2 where it cannot tell).
///
/// The three losses (real, generated, generator) have a loss scaler each: before it runs,
/// `amp::Initialize({generator, discriminator}, {optimizer_g, optimizer_d}, {.num_losses = 3})` chooses level and
/// scales. Networks and optimizers are not owned.
class DcganStep : public nn::TrainingStep {
 public:
  MPC_CELL(DcganStep, generator, discriminator)
  DcganStep(DcganGenerator& generator, DcganDiscriminator& discriminator, nn::Optimizer& optimizer_g,
            nn::Optimizer& optimizer_d)
      : generator(generator), discriminator(discriminator), optimizer_g(optimizer_g), optimizer_d(optimizer_d) {}

  std::pair<Tensor, Tensor> Construct(Tensor images, Tensor noise) {
    const Tensor generated = generator(noise);
    const Tensor on_real = Judge(images, 1);
    const Tensor on_generated = Judge(stop_gradient(generated), 0);
    std::vector<Tensor> gradients = Backward(on_real, optimizer_d, 0);
    const std::vector<Tensor> more = Backward(on_generated, optimizer_d, 1);
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = gradients[i] + more[i];
    bool stepped = optimizer_d(gradients);
    // Judged by the discriminator as it has just become.
    const Tensor passed = Judge(generated, 1);
    stepped = optimizer_g(Backward(passed, optimizer_g, 2)) && stepped;
    return {ops::Depend(on_real + on_generated, stepped), passed};
  }
  nn::CellFunction predicted_network() const override { return generator; }
  std::vector<nn::Optimizer*> optimizers() const override { return {&optimizer_g, &optimizer_d}; }

 private:
  Tensor Judge(const Tensor& images, double label) {
    const Tensor logits = discriminator(images);
    return binary_cross_entropy_with_logits(logits, ops::Fill(DType::kF32, logits.shape(), label));
  }
  static std::vector<Tensor> Backward(const Tensor& loss, nn::Optimizer& optimizer, std::int64_t loss_id) {
    return ops::Backward(amp::ScaleLoss(loss, optimizer, {.loss_id = loss_id}), optimizer.parameters());
  }

  DcganGenerator& generator;
  DcganDiscriminator& discriminator;
  nn::Optimizer& optimizer_g;
  nn::Optimizer& optimizer_d;
};

}  // namespace mpc::models

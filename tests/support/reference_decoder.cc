#include "tests/support/reference_decoder.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "real/kernels/numbers.h"
#include "tests/support/autodiff.h"

namespace rehearse {
namespace {

constexpr double kDropout = 0.1;  // workloads/networks/decoder_network.cc
constexpr double kEpsilon = 1e-5;

// A matrix of numbers; vectors have one row.
struct Array {
  uint64_t rows = 0;
  uint64_t columns = 0;
  std::vector<Number> values;

  Array() = default;
  Array(uint64_t r, uint64_t c) : rows(r), columns(c), values(r * c) {}
  Number& operator()(uint64_t i, uint64_t j) { return values[i * columns + j]; }
  const Number& operator()(uint64_t i, uint64_t j) const { return values[i * columns + j]; }
};

class Decoder {
 public:
  Decoder(const GptModel& model, const Training& training, uint64_t seed,
          const std::string& shifted, double shift)
      : model_(model), training_(training), seed_(seed), shifted_(shifted), shift_(shift) {}

  StepNumbers Run() {
    Tape::Current().Clear();
    const uint64_t micro_batches = training_.micro_batches;
    const uint64_t rows = training_.batch * training_.sequence / micro_batches;
    Number loss = 0;
    for (uint64_t i = 0; i < micro_batches; ++i) {
      micro_batch_ = static_cast<int32_t>(i);
      loss += LossOf(rows, i * rows);
    }
    loss = loss / training_.Tokens();
    StepNumbers numbers;
    numbers.loss = loss.value();
    const std::vector<double> gradient = Tape::Current().Gradient(loss.index());
    for (const auto& [name, array] : parameters_) {
      const bool is_adapter =
          name.find(" A of ") != std::string::npos || name.find(" B of ") != std::string::npos;
      if (model_.lora && !is_adapter) continue;  // frozen
      GlobalArray& of = numbers.arrays["gradient of " + name];
      of.kind = BufferKind::kGradient;
      of.rows = array.rows;
      of.columns = array.columns;
      for (const Number& value : array.values) of.values.push_back(gradient[value.index()]);
    }
    return numbers;
  }

 private:
  // The parameter of this name, made when it is first asked for.
  const Array& Parameter(const std::string& name, uint64_t rows, uint64_t columns) {
    const std::string full =
        scope_ + (layer_ < 0 ? name : name + " of layer " + std::to_string(layer_));
    const auto [it, is_new] = parameters_.try_emplace(full, rows, columns);
    if (!is_new) return it->second;
    const InitialValues initial(seed_, full, rows, columns);
    for (uint64_t i = 0; i < rows; ++i) {
      for (uint64_t j = 0; j < columns; ++j) {
        const bool is_shifted = full == shifted_ && i == 0 && j == 0;
        it->second(i, j) = Number::Leaf(initial.At(i, j) + (is_shifted ? shift_ : 0));
      }
    }
    return it->second;
  }

  // X·Wᵀ: weights are stored n×k.
  Array Product(const Array& x, const std::string& name, uint64_t n) {
    const Array& w = Parameter(name, n, x.columns);
    Array y(x.rows, n);
    for (uint64_t i = 0; i < x.rows; ++i) {
      for (uint64_t j = 0; j < n; ++j) {
        for (uint64_t k = 0; k < x.columns; ++k) y(i, j) += x(i, k) * w(j, k);
      }
    }
    return y;
  }

  // With low-rank adapters, if the weight has some: X·W^T + (X·A^T)·B^T.
  Array Adapted(const Array& x, const std::string& name, uint64_t n, bool LoraTargets::*target) {
    const Array y = Product(x, name, n);
    if (!model_.lora || !(model_.lora->on.*target)) return y;
    return Sum(y, Product(Product(x, name + " A", model_.lora->rank), name + " B", n));
  }

  Array WithBias(Array x, const std::string& name) {
    const Array& bias = Parameter(name, 1, x.columns);
    for (uint64_t i = 0; i < x.rows; ++i) {
      for (uint64_t j = 0; j < x.columns; ++j) x(i, j) = x(i, j) + bias(0, j);
    }
    return x;
  }

  Array Dropped(Array x, uint64_t salt) const {
    const DropoutMask mask(seed_, layer_, micro_batch_, salt, kDropout, x.columns);
    for (uint64_t i = 0; i < x.rows; ++i) {
      for (uint64_t j = 0; j < x.columns; ++j) x(i, j) = x(i, j) * mask.At(i, j);
    }
    return x;
  }

  static Array Sum(const Array& x, const Array& y) {
    Array sum(x.rows, x.columns);
    for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] = x.values[i] + y.values[i];
    return sum;
  }

  Array Norm(const Array& x, const std::string& name) {
    const Array& gain = Parameter(name + " gain", 1, x.columns);
    Array y(x.rows, x.columns);
    const auto n = static_cast<double>(x.columns);
    for (uint64_t i = 0; i < x.rows; ++i) {
      Number mean = 0;
      if (!model_.llama) {
        for (uint64_t j = 0; j < x.columns; ++j) mean += x(i, j) / n;
      }
      Number square = 0;
      for (uint64_t j = 0; j < x.columns; ++j) {
        square += (x(i, j) - mean) * (x(i, j) - mean) / n;
      }
      const Number deviation = sqrt(square + kEpsilon);
      for (uint64_t j = 0; j < x.columns; ++j) y(i, j) = (x(i, j) - mean) / deviation * gain(0, j);
    }
    return model_.llama ? y : WithBias(y, name + " bias");
  }

  Array Attention(const Array& x) const {
    const uint64_t size = model_.HeadSize();
    const uint64_t of_group = model_.heads / model_.Groups();
    Array out(x.rows, model_.hidden);
    for (uint64_t row = 0; row < x.rows; ++row) {
      const uint64_t first = row / training_.Attended() * training_.Attended();
      for (uint64_t head = 0; head < model_.heads; ++head) {
        const uint64_t base = head / of_group * (of_group + 2) * size;
        const uint64_t query = base + head % of_group * size;
        const uint64_t key = base + of_group * size;
        const uint64_t value = key + size;
        std::vector<Number> weights;
        Number sum = 0;
        for (uint64_t other = first; other <= row; ++other) {
          Number score = 0;
          for (uint64_t d = 0; d < size; ++d) score += x(row, query + d) * x(other, key + d);
          weights.push_back(exp(score / std::sqrt(static_cast<double>(size))));
          sum += weights.back();
        }
        for (uint64_t d = 0; d < size; ++d) {
          for (uint64_t other = first; other <= row; ++other) {
            out(row, head * size + d) += weights[other - first] / sum * x(other, value + d);
          }
        }
      }
    }
    return out;
  }

  // The heads have a query and a key of `head` columns of their own and `rope_head` further ones,
  // which all keys share, as in DeepSeek's papers.
  Array LatentAttentionOf(const Array& x) {
    const LatentAttention& latent = *model_.latent;
    const uint64_t size = latent.QuerySize();
    const uint64_t block = latent.head + latent.value_head;
    const Array compressed = latent.query_rank == 0
                                 ? x
                                 : Norm(Product(x, "query down", latent.query_rank), "query norm");
    const Array q = Product(compressed, "query up", model_.heads * size);
    const Array kv = Product(Norm(Product(x, "kv down", latent.kv_rank), "kv norm"), "kv up",
                             model_.heads * block);
    const Array shared = Product(x, "key position", latent.rope_head);
    Array out(x.rows, model_.heads * latent.value_head);
    for (uint64_t row = 0; row < x.rows; ++row) {
      const uint64_t first = row / training_.Attended() * training_.Attended();
      for (uint64_t head = 0; head < model_.heads; ++head) {
        std::vector<Number> weights;
        Number sum = 0;
        for (uint64_t other = first; other <= row; ++other) {
          Number score = 0;
          for (uint64_t d = 0; d < latent.head; ++d)
            score += q(row, head * size + d) * kv(other, head * block + d);
          for (uint64_t d = 0; d < latent.rope_head; ++d)
            score += q(row, head * size + latent.head + d) * shared(other, d);
          weights.push_back(exp(score / std::sqrt(static_cast<double>(size))));
          sum += weights.back();
        }
        for (uint64_t d = 0; d < latent.value_head; ++d) {
          for (uint64_t other = first; other <= row; ++other) {
            out(row, head * latent.value_head + d) +=
                weights[other - first] / sum * kv(other, head * block + latent.head + d);
          }
        }
      }
    }
    return out;
  }

  // Megatron-LM's mixer as a textbook has it, one token after the other. Columns of the first
  // product lie group by group: z, x, B, C, dt.
  Array StateSpace(const Array& u) {
    const StateSpaceModel& of = *model_.mamba;
    const uint64_t heads = of.Heads(model_.hidden);
    const uint64_t of_group = heads / of.groups;
    const uint64_t inner = of_group * of.head;  // of a group
    const uint64_t block = 2 * inner + 2 * of.state + of_group;
    const uint64_t mixed = inner + 2 * of.state;
    const Array in = Product(u, "in projection", of.groups * block);
    const Array& taps = Parameter("convolution", 1, of.groups * mixed * of.conv);
    const Array& taps_bias = Parameter("convolution bias", 1, of.groups * mixed);
    const Array& dt_bias = Parameter("dt bias", 1, heads);
    const Array& a_log = Parameter("A logarithm", 1, heads);
    const Array& d = Parameter("D", 1, heads);
    const Array& gain = Parameter("state norm gain", 1, of.groups * inner);
    const auto silu = [](const Number& v) { return v / (Number(1) + exp(Number(0) - v)); };
    Array m(u.rows, of.groups * mixed);
    Array y(u.rows, of.groups * inner);
    std::map<uint64_t, std::vector<Number>> states;  // of each head
    for (uint64_t row = 0; row < u.rows; ++row) {
      const uint64_t place = row % training_.Attended();
      if (place == 0) states.clear();
      for (uint64_t group = 0; group < of.groups; ++group) {
        for (uint64_t i = 0; i < mixed; ++i) {
          const uint64_t to = group * mixed + i;
          Number sum = taps_bias(0, to);
          for (uint64_t tap = 0; tap < of.conv; ++tap) {
            const uint64_t back = of.conv - 1 - tap;
            if (back > place) continue;
            sum += taps(0, to * of.conv + tap) * in(row - back, group * block + inner + i);
          }
          m(row, to) = silu(sum);
        }
        Number squares = 0;
        for (uint64_t h = 0; h < of_group; ++h) {
          const uint64_t head = group * of_group + h;
          std::vector<Number>& state =
              states.try_emplace(head, of.head * of.state, Number(0)).first->second;
          const Number raw =
              in(row, group * block + 2 * inner + 2 * of.state + h) + dt_bias(0, head);
          const Number dt = log(Number(1) + exp(raw));
          const Number decay = exp(dt * (Number(0) - exp(a_log(0, head))));
          for (uint64_t p = 0; p < of.head; ++p) {
            const Number x = m(row, group * mixed + h * of.head + p);
            Number sum = d(0, head) * x;
            for (uint64_t n = 0; n < of.state; ++n) {
              Number& of_state = state[p * of.state + n];
              of_state = decay * of_state + dt * x * m(row, group * mixed + inner + n);
              sum += of_state * m(row, group * mixed + inner + of.state + n);
            }
            const uint64_t column = group * inner + h * of.head + p;
            y(row, column) = sum * silu(in(row, group * block + h * of.head + p));
            squares += y(row, column) * y(row, column) / static_cast<double>(inner);
          }
        }
        for (uint64_t i = group * inner; i < (group + 1) * inner; ++i)
          y(row, i) = y(row, i) / sqrt(squares + kEpsilon) * gain(0, i);
      }
    }
    return Product(y, "out projection", model_.hidden);
  }

  Array LayerOf(char letter, const Array& x) {
    const Array h = Norm(x, "norm");
    if (letter == 'M') return Sum(x, StateSpace(h));
    if (letter == '-') {
      const uint64_t up = model_.FeedForward() * (model_.squared_relu ? 1 : 2);
      return Sum(x, Product(Activated(Product(h, "up", up)), "down", model_.hidden));
    }
    const uint64_t qkv = (model_.heads + 2 * model_.Groups()) * model_.HeadSize();
    return Sum(x, Product(Attention(Product(h, "qkv", qkv)), "projection", model_.hidden));
  }

  Array Activated(const Array& x) {
    if (model_.squared_relu) {
      Array y(x.rows, x.columns);
      for (size_t i = 0; i < x.values.size(); ++i)
        if (x.values[i].value() > 0) y.values[i] = x.values[i] * x.values[i];
      return y;
    }
    if (!model_.llama) {
      Array y = WithBias(x, "up bias");
      for (Number& v : y.values) {
        v = v * 0.5 *
            (Number(1) + tanh((v + v * v * v * 0.044715) * std::sqrt(2 / 3.14159265358979323846)));
      }
      return y;
    }
    Array y(x.rows, x.columns / 2);
    for (uint64_t i = 0; i < y.rows; ++i) {
      for (uint64_t j = 0; j < y.columns; ++j) {
        const Number gate = x(i, 2 * j);
        y(i, j) = gate / (Number(1) + exp(Number(0) - gate)) * x(i, 2 * j + 1);
      }
    }
    return y;
  }

  // Nodes are numbered in the order in which they run, and dropouts salted with their number:
  // embedding 0, its dropout 1, then 11 nodes per layer, the 6th and the last of which are
  // residuals. Attention beside the MLP has one residual, the last of 11 nodes, or 12 with a second
  // norm.
  Array Layer(const Array& x) {
    if (!model_.layer_pattern.empty())
      return LayerOf(model_.layer_pattern[static_cast<size_t>(layer_)], x);
    const uint64_t nodes = model_.parallel == ParallelBlocks::kTwoNorms ? 12 : 11;
    const uint64_t node = 2 + nodes * static_cast<uint64_t>(layer_);
    const uint64_t h = model_.hidden;
    const uint64_t qkv = (model_.heads + 2 * model_.Groups()) * model_.HeadSize();
    const Array h1 = Norm(x, "norm 1");
    Array y;
    if (model_.latent) {
      y = LatentAttentionOf(h1);
    } else {
      y = Adapted(h1, "qkv", qkv, &LoraTargets::qkv);
      if (!model_.llama) y = WithBias(y, "qkv bias");
      y = Attention(y);
    }
    y = Adapted(y, "projection", h, &LoraTargets::projection);
    if (!model_.llama) y = WithBias(y, "projection bias");
    const bool is_parallel = model_.parallel != ParallelBlocks::kNone;
    if (!model_.llama && !is_parallel) y = Dropped(y, node + 5);
    const Array attention = y;
    const Array middle = Sum(x, y);
    const uint64_t up = model_.FeedForward() * (model_.llama ? 2 : 1);
    const Array h2 = model_.parallel == ParallelBlocks::kOneNorm    ? h1
                     : model_.parallel == ParallelBlocks::kTwoNorms ? Norm(x, "norm 2")
                                                                    : Norm(middle, "norm 2");
    y = Adapted(h2, "up", up, &LoraTargets::up);
    y = Adapted(Activated(y), "down", h, &LoraTargets::down);
    if (!model_.llama) y = WithBias(y, "down bias");
    if (is_parallel) y = Sum(y, attention);
    if (!model_.llama) y = Dropped(y, node + nodes - 1);
    return Sum(is_parallel ? x : middle, y);
  }

  // The sum over the rows of one micro-batch, the first of which is `first` in the whole batch.
  Number LossOf(uint64_t rows, uint64_t first) {
    layer_ = -1;
    const Array& table = Parameter("embedding", model_.vocabulary, model_.hidden);
    Array x = Embedded(table, rows, first);
    if (!model_.llama) x = Dropped(x, 1);
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      layer_ = static_cast<int32_t>(layer);
      x = Layer(x);
    }
    layer_ = -1;
    Number loss = CrossEntropy(Norm(x, "final norm"), first);
    for (uint32_t ahead = 1; ahead <= model_.predict_ahead; ++ahead) {
      if (ahead > 1 && !model_.shares_ahead) scope_ = std::to_string(ahead) + " tokens ";
      const Array before = Norm(x, "ahead norm");
      const Array next = Norm(Embedded(table, rows, first + ahead), "ahead embedding norm");
      Array joined(rows, 2 * model_.hidden);
      for (uint64_t i = 0; i < rows; ++i) {
        for (uint64_t j = 0; j < model_.hidden; ++j) {
          joined(i, 2 * j) = before(i, j);
          joined(i, 2 * j + 1) = next(i, j);
        }
      }
      x = Product(joined, "ahead join", model_.hidden);
      if (model_.ahead_pattern.empty()) x = Layer(x);
      const std::string scope = scope_;
      for (size_t i = 0; i < model_.ahead_pattern.size(); ++i) {
        if (i > 0) scope_ = scope + "part " + std::to_string(i + 1) + " ";
        x = LayerOf(model_.ahead_pattern[i], x);
      }
      scope_ = scope;
      const Array y = Norm(x, "ahead final norm");
      scope_ = "";
      loss += CrossEntropy(y, first + ahead) * model_.ahead_weight;
    }
    return loss;
  }

  // The rows of `rows` tokens from `first` on.
  Array Embedded(const Array& table, uint64_t rows, uint64_t first) const {
    Array x(rows, model_.hidden);
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t token = TokenAt(seed_, first + i, model_.vocabulary);
      for (uint64_t j = 0; j < model_.hidden; ++j) x(i, j) = table(token, j);
    }
    return x;
  }

  // The loss of the labels of rows from `first` on.
  Number CrossEntropy(const Array& x, uint64_t first) {
    const uint64_t rows = x.rows;
    const Array logits = Product(x, model_.tied ? "embedding" : "output", model_.vocabulary);
    Number loss = 0;
    for (uint64_t i = 0; i < rows; ++i) {
      Number sum = 0;
      for (uint64_t j = 0; j < logits.columns; ++j) sum += exp(logits(i, j));
      loss += log(sum) - logits(i, LabelAt(seed_, first + i, model_.vocabulary));
    }
    return loss;
  }

  const GptModel& model_;
  const Training& training_;
  const uint64_t seed_;
  const std::string shifted_;
  const double shift_;
  int32_t layer_ = -1;
  std::string scope_;  // what names of parameters begin with
  int32_t micro_batch_ = 0;
  std::map<std::string, Array> parameters_;
};

}  // namespace

StepNumbers ReferenceDecoderStep(const GptModel& model, const Training& training, uint64_t seed,
                                 const std::string& shifted, double shift) {
  return Decoder(model, training, seed, shifted, shift).Run();
}

}  // namespace rehearse

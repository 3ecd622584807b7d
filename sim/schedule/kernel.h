// The vocabulary of compute ops: what each one computes, on which operands.
//
// Planners (workloads/) write these into a Schedule, backends (real/) execute them; the simulator
// needs only the op's flops and bytes and never looks here. Operands are the op's `reads` and
// `writes` in the order given below, local pieces of row-major matrices (Buffer::rows ×
// Buffer::columns). A buffer that is both read and written is updated in place. Rows are tokens
// (sequence by sequence) or samples; n is the *global* number of columns where a row is split over
// ranks. `d` is a gradient; "+=" adds to what the buffer holds (a buffer begins the step at zero if
// it is a gradient, else undefined).
//
// Attributes are in Compute::attributes, in the order that each kernel names them.
#pragma once

#include <cstdint>

namespace rehearse {

enum class Kernel : uint8_t {
  kNone,  // not said: an op that only takes time; if that is fixed, it is executed by waiting

  // C = A·B by Gemm's sizes and mode; C += A·B where C is read too.      reads A, B [, C]; writes C
  kGemm,

  // ---- data movement ----------------------------------------------------------------------------
  // Y = X in Y's precision.                                                       reads X; writes Y
  kCopy,
  // Y += X in Y's precision (gradient accumulation).                           reads X, Y; writes Y
  kAccumulate,
  // Y = X + Z.                                                                 reads X, Z; writes Y
  kAdd,
  // The rows of p blocks stacked in X become the columns of Y: block i of X (Y.rows × X.columns) is
  // columns [i·X.columns, (i+1)·X.columns) of Y. After an all-gather of columns.  reads X; writes Y
  kUnstack,
  // The reverse: before a reduce-scatter or an all-to-all of columns.             reads X; writes Y
  kStack,

  // ---- transformer ------------------------------------------------------------------------------
  // Y[i] = table[token i]; zero where another rank has the token's row. Attributes, also of the
  // next kernel: [how many tokens further ahead].                             reads table; writes Y
  kEmbedding,
  // d table[token i] += dY[i] for the rows this rank has; onto zeros where d table is not read.
  //                                                            reads dY [, d table]; writes d table
  kEmbeddingBackward,
  // X += bias.                                                              reads X, bias; writes X
  kBias,
  // d bias += column sums of dY.                                    reads dY, d bias; writes d bias
  kBiasBackward,
  // Y = gelu(X + bias), tanh form.                                          reads X, bias; writes Y
  kBiasGelu,
  // dX = dY·gelu'(X + bias); d bias += column sums of dX.
  //                                                    reads dY, X, bias, d bias; writes dX, d bias
  kBiasGeluBackward,
  // Columns of X are pairs (gate, up): Y = silu(gate)·up.                         reads X; writes Y
  kSwiGlu,
  kSwiGluBackward,  // reads dY, X; writes dX
  // The sums over this rank's columns, per row: (x, x²).               reads X; writes S (rows × 2)
  kNormStatistics,
  // Layer norm: M = (mean, 1/deviation) per row, Y = (X - mean)·rdev·gain + bias, epsilon 1e-5.
  // Statistics S, already summed over ranks, are an operand where a row is split.
  //                                               reads X, gain, bias [, S]; writes Y, M (rows × 2)
  kNorm,
  // The sums over this rank's columns of (g, g·x̂), g = dY·gain.
  //                                                       reads X, dY, gain, M; writes S (rows × 2)
  kNormBackwardStatistics,
  // dX = rdev·(g - mean(g) - x̂·mean(g·x̂)) [+ Z, the gradient that went round the norm]; d gain +=
  // sums of dY·x̂, d bias += sums of dY. S is an operand where a row is split.
  //                           reads X, dY, gain, M, d gain, d bias [, S]; writes dX, d gain, d bias
  kNormBackward,
  //                        reads X, dY, gain, M, d gain, d bias, Z [, S]; writes dX, d gain, d bias
  kNormBackwardAdd,
  // RMS norm of Llama: no mean, no bias. S is rows × 1, M = 1/rms (rows × 1); the operands of the
  // four kernels above without `bias` and `d bias`.
  kRmsNormStatistics,
  kRmsNorm,
  kRmsNormBackwardStatistics,
  kRmsNormBackward,
  kRmsNormBackwardAdd,
  // O = softmax(Q·Kᵀ/√size + mask)·V, causal, per sequence and head. Columns of X are groups of
  // heads: the q of the group's heads, then its k, then its v. Attributes: sequence, groups on this
  // rank, heads a group, head size, causal (0 or 1) [, window: tokens that a causal query sees,
  // itself the last; 0: all; 1; 0; -1; columns of a v, where these are not those of a head].
  // L = log of the sum of exponentials, rows × heads.
  //                                                              reads X; writes O, L [, scores]
  // An unfused core also stores its scores: a buffer without rows, which backends may ignore.
  kAttention,
  kAttentionBackward,  // reads dO, X, O, L [, scores]; writes dX
  // Y = Z + dropout(X + bias); mask is 0 or 1/(1-probability) (as kept, a byte). The mask depends
  // only on the op's layer and micro-batch, `salt` and the element's global position. Attributes:
  // probability, salt.                                             reads X, Z, bias; writes Y, mask
  kResidual,
  // dX = dY·mask; d bias += column sums of dX, if there is one.
  //                                                 reads dY, mask [, d bias]; writes dX [, d bias]
  kDropoutBackward,
  kDropout,  // Y = dropout(X). Attributes: probability, salt.  reads X; writes Y, mask

  // ---- loss: the mean over all tokens (or samples) of the step of -log softmax[label] -----------
  // Attributes of kExponentials to kCrossEntropyBackward: [how many tokens further ahead the label
  // is, what this loss counts].
  // Per row over this rank's columns.                                  reads X; writes M (rows × 1)
  kMaximum,
  // E = exp(X - M); S = (sum of E, X[label] - M or 0 where another rank has the label).
  //                                                              reads X, M; writes E, S (rows × 2)
  kExponentials,
  // Per row loss: log S0 - S1, added to the step's loss.            reads S; writes loss (rows × 1)
  kCrossEntropy,
  // dX = (E/S0 - [label]) / tokens of the step.                               reads E, S; writes dX
  kCrossEntropyBackward,
  // Networks without classes: loss = |X - target|²/2.                      reads X; writes loss, dX
  kSquaredError,

  // ---- convolutional networks: rows are pixels (image by image, line by line), columns channels -
  kRelu,          // reads X; writes Y
  kReluBackward,  // reads dY, Y; writes dX
  // C has a row for each output pixel: the channels × kernel × kernel inputs that it sees, zero
  // outside the image. A convolution is this and a product. Attributes: height, width, kernel,
  // stride, padding.                                                              reads X; writes C
  kIm2Col,
  // The transposed map: sums. The same attributes.                                reads C; writes X
  kCol2Im,
  // Attributes: height, width, window.                                            reads X; writes Y
  kMaxPool,
  kMaxPoolBackward,  // reads dY, X, Y; writes dX
  // Nearest neighbour, twice in y and x. Attributes: height, width.               reads X; writes Y
  kUpsample,
  kUpsampleBackward,  // reads dY; writes dX
  // An image becomes one row, channel by channel. Attributes: pixels of an image.
  //                                                                               reads X; writes Y
  kFlatten,
  kFlattenBackward,  // reads dY; writes dX
  // Y joins the columns of X and Z in equal blocks that take turns, x0 z0 x1 z1 …, so that
  // pieces of joined columns are joined pieces. Attributes: blocks on this rank.
  //                                                                            reads X, Z; writes Y
  kConcatenate,
  // The reverse.                                                               reads Y; writes X, Z
  kSeparate,
  // Normalises the pixels of an image over each group of neighbouring channels; M = (mean,
  // 1/deviation) of each group, images × 2·groups. Attributes: pixels of an image, groups on this
  // rank, epsilon 1e-5.                                            reads X, gain, bias; writes Y, M
  kGroupNorm,
  //                                 reads X, dY, gain, M, d gain, d bias; writes dX, d gain, d bias
  kGroupNormBackward,
  // Y = X·(1 + a) + b, where columns of E are pairs (a, b) and a row of E is for all pixels of an
  // image. Attributes: pixels of an image.                                     reads X, E; writes Y
  kModulate,
  kModulateBackward,  // reads dY, X, E; writes dX, dE

  // ---- optimizer --------------------------------------------------------------------------------
  // Sum of squares of gradients; a gradient that r ranks hold counts 1/r. Attributes: 1/r of each
  // gradient.                                                 reads gradients…; writes norm (1 × 1)
  kSquaredNorm,
  // Adam in fp32; gradients are clipped to norm 1. The state is one array of as many elements as
  // all parameters have, in their order, times 3 rows (master weights, two moments) or 2 where
  // parameters are fp32 themselves. Master weights may also be an array of one row, before that of
  // the moments. Attributes: learning rate [, AdamAgain: undoes the update that was clipped by
  // `norm`, and does it with `whole`, unless both clip alike].
  //         reads gradients…, norm [, whole]; writes as many parameters…, [master weights,] state
  kAdam,
  // SGD with momentum: M = m·M + clipped gradient, w -= rate·M. The state is as Adam's, with one
  // moment. Attributes: rate, m.
  //                    reads gradients…, norm; writes as many parameters…, [master weights,] state
  kMomentum,
  // LAMB's (You et al. 2020, algorithm 2) part of Adam: its two moments, and nothing else.
  // Attributes: rate.  reads gradients…, norm; writes as many parameters…, [master weights,] state
  kLambMoments,
  // (sum of w², sum of u²) of each tensor, where w are master weights or parameters and u is Adam's
  // direction plus decay·w; what r ranks hold counts 1/r. Attributes: decay, rate, arrays, then for
  // each tensor, in the order of the state: its elements on this rank, 1/r.
  //                        reads parameters…, [master weights,] state; writes N (tensors × 2, fp32)
  kLambNorms,
  // w -= rate·|w|/|u|·u with the norms of whole tensors; 1 for |w|/|u| where either is zero. The
  // same attributes.
  //                                       reads N; writes parameters…, [master weights,] state
  kLambStep,
  // Muon's (Jordan et al. 2024) D = g + m·M of a matrix's clipped gradient, Nesterov's momentum.
  // Attributes: m, where its part of the state begins.        reads gradient, norm, state; writes D
  kMuonDirections,
  // Y = X / (root of S + 1e-7), S the sum of squares of X.                  reads X, S; writes Y
  kNormalize,
  // Y = a·X + b·Z. Attributes: a, b.                                        reads X, Z; writes Y
  kLinear,
  // w = (1 - rate·decay)·w - rate·scale·O of a matrix. Attributes: rate, decay, scale, where its
  // part of the state begins.      reads O; writes parameter, [master weights,] state, left alone
  kMuonStep,

  // ---- attention over sequences that several ranks share (sim/schedule/sequence_order.h) --------
  // KV has the k and v of each group of X, group by group. Attributes: groups on this rank, heads a
  // group, head size.
  kTakeKeys,  // reads X; writes KV
  // The same columns of dX from dKV.                                     reads dKV, dX; writes dX
  kPutKeys,
  // The core of X's queries over the keys of KV alone, where O is zero and L -infinity for a query
  // without one. Attributes: those of kAttention with the window, ranks that share a sequence,
  // balanced (0 or 1), step: KV has the rows of the rank this many before this one, cyclically; -1:
  // those of all ranks, rank by rank.                                   reads X, KV; writes O, L
  kAttentionPart,
  // O and L are those over all keys. dQ into its columns of dX, added to what is there where dX is
  // read.                                         reads dO, X, KV, O, L [, dX]; writes dX, dKV
  kAttentionPartBackward,
  // Joins O and L with those over other keys.                   reads O', L', O, L; writes O, L
  kAttentionMerge,
  // Rows of all ranks that share sequences, rank by rank, become rows sequence by sequence.
  // Attributes: sequence, ranks, balanced, 0, or 1 for the way back.              reads X; writes Y
  kOrderSequences,

  // ---- latent attention -------------------------------------------------------------------------
  // A group of X for each head: its q, out of Q; its k, those columns of its block of KV that are
  // not its v, then R; its v. Columns of a block of KV: k, v; R has one block for all heads.
  // Attributes: heads on this rank, columns of a q, of R, of a v.         reads Q, KV, R; writes X
  kJoinHeads,
  // The reverse; dR is the sum over this rank's heads.               reads dX; writes dQ, dKV, dR
  kSplitHeads,

  // ---- experts (sim/schedule/expert_routing.h) --------------------------------------------------
  // Attributes of kRoute to kCombineBackward: RoutingAttribute. Rows of tokens are whole runs.
  // Those of choices that are taken come expert by expert, within an expert token by token.
  // W is rows × choices per token: its scores of the experts that it asks for, over their sum (for
  // one sigmoid: the score). Scores are softmax or sigmoid of L, rows × experts. C counts the
  // choices that each expert takes, 1 × experts.                             reads L; writes W, C
  kRoute,
  // With the gradient of the loss that balances experts: auxiliary · experts · the mean over tokens
  // of the step of the sum over experts of their share of choices times their share of the token's
  // scores.                                                                 reads dW, L; writes dL
  kRouteBackward,
  // A row of Y for each choice; counts of all ranks, where they are read, only set the order.
  //                                                                        reads X [, C]; writes Y
  kPermute,
  kPermuteBackward,  // reads dY; writes dX, the sum of a token's rows
  // The sum of a token's rows times their weights.                         reads X, W; writes Y
  kCombine,
  kCombineBackward,  // reads dY, X, W; writes dX, dW
  // Rows come source by source, within a source expert by expert; they go expert by expert, within
  // an expert source by source. Attributes: sources, 0 or 1 for the way back, then the rows of a
  // source for each expert.                                                   reads X; writes Y
  kOrderChunks,
  // A product for each expert of this rank, by Gemm's mode with its mean of rows: forward C_e =
  // A_e·W_e^T (NT), dA_e = dC_e·W_e (NN), dW_e = dC_e^T·A_e (TN). Attributes: 0 where the experts'
  // W lie on one another, 1 where they lie side by side; then the rows of each expert, which are
  // those of A, one expert's after the other's. dW is written, or added to where it is read.
  //                                                              reads A, B [, C]; writes C
  kGroupedGemm,

  // ---- state-space layers (sim/schedule/state_space.h), and MLPs beside them --------------------
  kSquaredRelu,          // Y = max(X, 0)².                                      reads X; writes Y
  kSquaredReluBackward,  // reads dY, X; writes dX
  // Attributes of those below: StateSpaceAttribute. Columns of X: z, x, B, C and dt of each group
  // of heads, those of M x, B and C, those of Y and G heads'.
  // M = silu(x, B, C convolved over the rows before each one, with bias); W has the taps of each
  // column, those of the row itself last.                             reads X, W, bias; writes M
  kStateConvolution,
  // dX's columns of x, B and C; the others stay.
  //                         reads dM, X, W, bias, d W, d bias, dX; writes dX, d W, d bias
  kStateConvolutionBackward,
  // With dt = softplus(dt of X + its bias), A = -exp(A's logarithm), from zero at the start of a
  // sequence, h = exp(dt·A)·h + dt·x·Bᵀ for each head. S has the h with which each chunk of rows
  // begins, heads × head size × state.            reads M, X, bias of dt, logarithm of A; writes S
  kStateChunks,
  // Y = h·C + D·x, G = Y·silu(z).       reads M, X, bias of dt, logarithm of A, D, S; writes Y, G
  kStateScan,
  // dX's columns of z and dt; its others are zero.
  //                  reads dG, Y, M, X, bias of dt, logarithm of A, D, S and the three's gradients;
  //                                                            writes dM, dX, the three's gradients
  kStateScanBackward,
  // Normalises the columns of each group: R = 1/rms, rows × groups, epsilon 1e-5, Y = G·R·gain.
  //                                                                     reads G, gain; writes Y, R
  kStateNorm,
  //                                              reads dY, G, gain, R, d gain; writes dG, d gain
  kStateNormBackward,
};
const char* Name(Kernel kernel);  // "bias-gelu"

// Adam's second attribute: whether the plan expects that its update has to be done again.
enum AdamAgain : uint8_t { kAdamOnce, kAdamIfClipped, kAdamTwice };

}  // namespace rehearse

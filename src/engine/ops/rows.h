#pragma once

#include "engine/ops/op_def.h"

namespace halfwatt {

// The rows of the table, each in the file of its op.
extern const OpDef kInput, kConstant, kRead, kWrite;
extern const OpDef kMatmul;
extern const OpDef kConvolution, kConvolutionInputGradient, kConvolutionWeightGradient;
extern const OpDef kAttention, kAttentionGradient;
extern const OpDef kLayerNorm, kLayerNormGradient;
extern const OpDef kCrossEntropy, kCrossEntropyGradient;
extern const OpDef kBinaryCrossEntropy, kBinaryCrossEntropyGradient;
extern const OpDef kMean, kSumTo;
extern const OpDef kCast, kNormalise, kAdd, kScale, kGelu, kGeluGradient, kDropout, kDropPath;
extern const OpDef kReshape, kExpand, kSlice, kSliceGradient, kConcatenate, kTranspose,
    kTransfer;
extern const OpDef kCheckGradients, kGradientFactor, kLearningRate, kAdamw, kSgd, kEma;
extern const OpDef kAdvance, kUpdateScale, kObserveAmax, kRescale;
extern const OpDef kAddLayerNorm, kLinear;

}  // namespace halfwatt

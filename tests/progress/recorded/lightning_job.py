"""The jobs behind lightning_*.bytes: lightning_job.py FOLDER EPOCHS [resume]. Trains a network of
one layer for EPOCHS epochs of 30 steps with a validation after each, in FOLDER.
"""

import os
import sys
import time

import lightning
import torch
from lightning.pytorch.callbacks import TQDMProgressBar


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def training_step(self, batch, _):
        time.sleep(0.01)
        loss = self.loss(batch)
        self.log("train_loss", loss, prog_bar=True, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", self.loss(batch), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(1)
    x = torch.randn(240, 8)
    data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", default_root_dir=folder,
                                logger=False, callbacks=[TQDMProgressBar(refresh_rate=1)],
                                enable_model_summary=False)
    checkpoint = os.path.join(folder, "last.ckpt")
    trainer.fit(Net(), loader, loader, ckpt_path=checkpoint if "resume" in sys.argv else None)
    trainer.save_checkpoint(checkpoint)


if __name__ == "__main__":
    main()
